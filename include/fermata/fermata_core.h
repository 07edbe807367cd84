/* The functions of libfermata.so, without MPI. Programs include fermata.h, which has fermata_open(). */
#ifndef FERMATA_FERMATA_CORE_H
#define FERMATA_FERMATA_CORE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fermata_handle fermata_handle;

typedef enum fermata_code {
    FERMATA_OK = 0,
    FERMATA_NOTHING = 1,   /* restore: there is nothing to restore; this is a first start */
    FERMATA_ARGUMENT = 2,  /* a call that cannot be right; nothing was done */
    FERMATA_MISMATCH = 3,  /* what was saved does not fit what is protected: names, types, shapes, ranks */
    FERMATA_STORAGE = 4,   /* the storage failed; the generation before is still there */
    FERMATA_DAMAGED = 5,   /* what was saved is incomplete or damaged, and nothing older can be had */
    FERMATA_MPI_FAILED = 6 /* MPI said no, or ranks did not call the same functions */
} fermata_code;

/* Element types. A name keeps its type over restarts. */
typedef enum fermata_type {
    FERMATA_BYTE = 1,
    FERMATA_INT8 = 2,
    FERMATA_INT16 = 3,
    FERMATA_INT32 = 4,
    FERMATA_INT64 = 5,
    FERMATA_UINT8 = 6,
    FERMATA_UINT16 = 7,
    FERMATA_UINT32 = 8,
    FERMATA_UINT64 = 9,
    FERMATA_FLOAT = 10,
    FERMATA_DOUBLE = 11,
    FERMATA_COMPLEX_FLOAT = 12,
    FERMATA_COMPLEX_DOUBLE = 13
} fermata_type;

#define FERMATA_MOST_DIMENSIONS 8

/* ---- what is to be saved. Local calls; each rank says its own part.
 *
 * `name`: 1 to 200 bytes, not empty. Saying a name again replaces what it meant (an array was resized,
 * moved). The memory must stay where it is until then. All ranks must have said the same names, types and
 * global shapes when they save or restore. */

/* The same value on every rank (step number, time): saved once, restored to all. */
int fermata_protect_global(fermata_handle*, const char* name, void* data, fermata_type type, int64_t count);
/* Each rank's own (a random generator's state): restored to the same rank; another number of ranks is
 * refused. */
int fermata_protect_local(fermata_handle*, const char* name, void* data, fermata_type type, int64_t count);
/* This rank's part of a distributed array: restored to any number of ranks, however they divide it.
 *
 * The array has global[0] x … x global[dimensions-1] elements. The part has extent[0] x … elements,
 * contiguous in C order (the last index runs fastest); its element i along dimension d is element offset[d] +
 * i * stride[d] of the array (stride NULL: 1, a block; the number of ranks: cyclic). A part without elements
 * is allowed. Parts of several ranks may overlap where they hold the same values (ghost cells). */
int fermata_protect_array(fermata_handle*, const char* name, void* data, fermata_type type, int dimensions,
                          const int64_t* global, const int64_t* offset, const int64_t* extent,
                          const int64_t* stride);
/* One more part of the array of this name, which fermata_protect_array has named (block-cyclic). */
int fermata_add_part(fermata_handle*, const char* name, void* data, const int64_t* offset,
                     const int64_t* extent, const int64_t* stride);
/* An object of the program's own, of each rank. size: bytes that pack will write. unpack gets what pack has
 * written; what it returns other than 0 makes the restore fail. */
typedef int64_t (*fermata_size_hook)(void* object);
typedef int (*fermata_pack_hook)(void* object, void* bytes, int64_t size);
typedef int (*fermata_unpack_hook)(void* object, const void* bytes, int64_t size);
int fermata_protect_object(fermata_handle*, const char* name, void* object, fermata_size_hook size,
                           fermata_pack_hook pack, fermata_unpack_hook unpack);
/* The name is not saved any more. */
int fermata_forget(fermata_handle*, const char* name);

/* ---- saving. Collective, but fermata_test().
 *
 * fermata_save() returns once the state is copied: from then on the program may change it, while a thread
 * writes. It waits first for the save before; when that has failed, its error is the answer, and nothing new
 * was begun. `step` is handed back by fermata_restore(). */
int fermata_save(fermata_handle*, int64_t step);
/* *durable = 1: the newest save is on storage (or, with an error as the answer, never will be). Not
 * collective, but all ranks have to call it, or fermata_wait(), for the save to come to its end. */
int fermata_test(fermata_handle*, int* durable);
int fermata_wait(fermata_handle*);

/* The newest generation that all ranks can have, into what is protected. FERMATA_NOTHING: there is none.
 * After any other error the protected memory may hold a part of it: do not go on with that. Collective. */
int fermata_restore(fermata_handle*, int64_t* step);

/* ---- when. Collective; all ranks get the same answer: 1 = yes. */

/* The interval of the options is over, SIGUSR1 came (option signals=yes), the job was asked for a checkpoint
 * (`fermata run --own-state`, `fermata checkpoint --own-state`; then until a save begins), or it is time to
 * exit. */
int fermata_should_checkpoint(fermata_handle*);
/* SIGTERM came (option signals=yes), the option walltime is nearly over, or the job was asked to stop (as
 * above): save, wait, and end. */
int fermata_should_exit(fermata_handle*);

/* ---- the rest */

/* The sentence to the last code other than FERMATA_OK of this handle; never NULL. NULL handle: why
 * fermata_open() could not even make one. */
const char* fermata_message(const fermata_handle*);
/* Waits for the save before; its error is the answer. The handle is gone then. Collective. */
int fermata_close(fermata_handle*);

/* ---- for bindings: MPI as functions (fermata.h makes it of the program's mpi.h) */

#define FERMATA_MPI_VERSION 1
typedef struct fermata_mpi {
    int version, rank, size;
    void* now;    /* two duplicates of the communicator: of calls that wait, */
    void* behind; /* and of what goes on behind the program's back */
    const char* library;
    int (*bcast)(void* comm, void* bytes, int64_t size, int root);
    int (*allgather)(void* comm, const void* mine, void* all, int64_t size);
    int (*exchange)(void* comm, const void* out, int64_t out_size, int to, void* in, int64_t in_size,
                    int from);
    int (*begin_gather)(void* comm, const void* mine, void* all, int64_t size);
    int (*begin_bcast)(void* comm, void* bytes, int64_t size);
    int (*test)(void* comm, int wait, int* over);
    void (*release)(void* comm);
} fermata_mpi;
int fermata_open_with(fermata_handle**, const fermata_mpi*, const char* directory, const char* options);

#ifdef __cplusplus
}
#endif

#endif
