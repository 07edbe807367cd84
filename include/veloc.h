/* VeloC's interface on libfermata: programs written for VeloC build with this header and -lfermata, unchanged
 * (docs/api.md). Written from the interface's public facts; its meaning: veloc.readthedocs.io. */
#ifndef FERMATA_VELOC_H
#define FERMATA_VELOC_H

#include <string.h>

#include "fermata/fermata.h"
#include "veloc/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `configuration`: a file of lines "key = value"; scratch and persistent are needed. Collective. */
static inline int VELOC_Init(MPI_Comm comm, const char* configuration) {
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    fermata_mpi mpi = fermata_mpi_of(comm, name);
    return fermata_veloc_init(&mpi, 0, configuration);
}
static inline int VELOC_Init_single(unsigned int id, const char* configuration) {
    return fermata_veloc_init(NULL, id, configuration);
}
/* Waits for what is being written, whatever `drain` says. Collective. */
int VELOC_Finalize(int drain);

/* This rank's memory under a number; of all checkpoints, or of those that have this name. */
int VELOC_Mem_protect(int id, void* data, size_t count, size_t size);
int VELOC_Region_protect(int id, void* data, size_t count, size_t size, const char* name);
int VELOC_Mem_unprotect(int id);
int VELOC_Region_unprotect(int id, const char* name);
int VELOC_Mem_clear(void);
int VELOC_Region_clear(const char* name);

/* Between begin and end of a checkpoint or a restart: the file to write, or to read, in the place of
 * `original`. `routed`: VELOC_MAX_NAME bytes. */
int VELOC_Route_file(const char* original, char* routed);
/* Files in `scratch` that belong to the name. */
int VELOC_Cleanup(const char* name);

/* Begin and end are collective. A rank that says success = 0, or has saved nothing, makes the checkpoint fail
 * on all, and the version does not exist. */
int VELOC_Checkpoint_begin(const char* name, int version);
int VELOC_Checkpoint_selective(int mode, int* ids, int count);
int VELOC_Checkpoint_mem(void);
int VELOC_Checkpoint_end(int success);
int VELOC_Checkpoint_wait(void);
/* 1 = it is durable, 0 = not yet. */
int VELOC_Checkpoint_finished(void);
int VELOC_Checkpoint(const char* name, int version);

/* The newest version below `below` (0: of all) that all ranks have, or VELOC_FAILURE. Collective. */
int VELOC_Restart_test(const char* name, int below);
int VELOC_Restart_begin(const char* name, int version);
int VELOC_Recover_selective(int mode, int* ids, int count);
/* Bytes saved under an id, -1 = none. */
int VELOC_Recover_size(int id);
int VELOC_Recover_mem(void);
int VELOC_Restart_end(int success);
int VELOC_Restart(const char* name, int version);

#ifdef __cplusplus
}
#endif

#endif
