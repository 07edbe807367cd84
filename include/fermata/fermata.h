/* Application-level checkpoints: a program names its state, saves it, and gets it back, on the same number of
 * ranks or on another one (docs/api.md). C99 and C++17.
 *
 * The library libfermata.so knows no MPI: this header is compiled against the program's own mpi.h and hands
 * over the few functions that are needed (fermata_mpi below). So one library serves every MPI.
 *
 * Every function that takes a handle and says "collective" must be called by all ranks of the communicator,
 * in the same order. Functions return a fermata_code; fermata_message() has the sentence. No function is
 * thread-safe; none may be called from a signal handler. Sizes and counts are 64-bit.
 */
#ifndef FERMATA_FERMATA_H
#define FERMATA_FERMATA_H

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

#include "fermata_core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what the library asks of MPI; not for programs */

typedef struct fermata_comm {
    MPI_Comm comm;
    MPI_Request request;
} fermata_comm;

/* MPI counts are int: larger messages go in pieces. */
#define FERMATA_PIECE ((int64_t)1 << 30)

static inline int fermata_mpi_bcast(void* where, void* bytes, int64_t size, int root) {
    MPI_Comm comm = ((fermata_comm*)where)->comm;
    char* at = (char*)bytes;
    int rc = MPI_SUCCESS;
    while (size > 0 && rc == MPI_SUCCESS) {
        int64_t piece = size < FERMATA_PIECE ? size : FERMATA_PIECE;
        rc = MPI_Bcast(at, (int)piece, MPI_BYTE, root, comm);
        at += piece;
        size -= piece;
    }
    return rc;
}

static inline int fermata_mpi_allgather(void* where, const void* mine, void* all, int64_t size) {
    return MPI_Allgather(mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, ((fermata_comm*)where)->comm);
}

/* Both sides of a message, or one: a negative rank sends, or receives, nothing. */
static inline int fermata_mpi_exchange(void* where, const void* out, int64_t out_size, int to, void* in,
                                       int64_t in_size, int from) {
    MPI_Comm comm = ((fermata_comm*)where)->comm;
    const char* mine = (const char*)out;
    char* theirs = (char*)in;
    int rc = MPI_SUCCESS;
    if (to < 0) out_size = 0;
    if (from < 0) in_size = 0;
    while ((out_size > 0 || in_size > 0) && rc == MPI_SUCCESS) {
        int64_t send = out_size < FERMATA_PIECE ? out_size : FERMATA_PIECE;
        int64_t receive = in_size < FERMATA_PIECE ? in_size : FERMATA_PIECE;
        rc = MPI_Sendrecv(mine, (int)send, MPI_BYTE, send > 0 ? to : MPI_PROC_NULL, 0, theirs, (int)receive,
                          MPI_BYTE, receive > 0 ? from : MPI_PROC_NULL, 0, comm, MPI_STATUS_IGNORE);
        mine += send;
        out_size -= send;
        theirs += receive;
        in_size -= receive;
    }
    return rc;
}

/* Every rank's `size` bytes to rank 0; and rank 0's to every rank. Over when test says so. */
static inline int fermata_mpi_begin_gather(void* where, const void* mine, void* all, int64_t size) {
    fermata_comm* c = (fermata_comm*)where;
    return MPI_Igather(mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, 0, c->comm, &c->request);
}
static inline int fermata_mpi_begin_bcast(void* where, void* bytes, int64_t size) {
    fermata_comm* c = (fermata_comm*)where;
    return MPI_Ibcast(bytes, (int)size, MPI_BYTE, 0, c->comm, &c->request);
}
static inline int fermata_mpi_test(void* where, int wait, int* over) {
    fermata_comm* c = (fermata_comm*)where;
    *over = 1;
    return wait ? MPI_Wait(&c->request, MPI_STATUS_IGNORE) : MPI_Test(&c->request, over, MPI_STATUS_IGNORE);
}

static inline void fermata_mpi_release(void* where) {
    fermata_comm* c = (fermata_comm*)where;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized && c->comm != MPI_COMM_NULL) MPI_Comm_free(&c->comm);
    free(c);
}

static inline void* fermata_mpi_duplicate(MPI_Comm comm) {
    fermata_comm* c = (fermata_comm*)calloc(1, sizeof *c);
    if (c == NULL) return NULL;
    c->request = MPI_REQUEST_NULL;
    if (MPI_Comm_dup(comm, &c->comm) != MPI_SUCCESS) {
        free(c);
        return NULL;
    }
    return c;
}

/* All of it for the ranks of `comm`. `name` has room for MPI_MAX_LIBRARY_VERSION_STRING and is kept until the
 * call that this is for has returned. */
static inline fermata_mpi fermata_mpi_of(MPI_Comm comm, char* name) {
    fermata_mpi mpi;
    int length = 0;
    mpi.version = FERMATA_MPI_VERSION;
    mpi.rank = 0;
    mpi.size = 1;
    MPI_Comm_rank(comm, &mpi.rank);
    MPI_Comm_size(comm, &mpi.size);
    mpi.now = fermata_mpi_duplicate(comm);
    mpi.behind = fermata_mpi_duplicate(comm);
    mpi.bcast = fermata_mpi_bcast;
    mpi.allgather = fermata_mpi_allgather;
    mpi.exchange = fermata_mpi_exchange;
    mpi.begin_gather = fermata_mpi_begin_gather;
    mpi.begin_bcast = fermata_mpi_begin_bcast;
    mpi.test = fermata_mpi_test;
    mpi.release = fermata_mpi_release;
    name[0] = 0;
    MPI_Get_library_version(name, &length);
    mpi.library = name;
    return mpi;
}

/* ---- the beginning; the rest is in fermata_core.h */

/* Opens `directory` (created when missing; NULL: "fermata-state") for the ranks of `comm`. `options`: words
 * like "keep=3,interval=10m" (docs/api.md), or NULL. Collective. `*handle` is set also when the answer is an
 * error, so that fermata_message() can say why; fermata_close() takes both. */
static inline int fermata_open(fermata_handle** handle, MPI_Comm comm, const char* directory,
                               const char* options) {
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    fermata_mpi mpi = fermata_mpi_of(comm, name);
    return fermata_open_with(handle, &mpi, directory, options);
}

#ifdef __cplusplus
}
#endif

#endif
