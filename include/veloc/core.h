/* What libfermata.so has of VeloC's interface, with a client as argument: for veloc.h and veloc.hpp, not for
 * programs. Functions answer VELOC_SUCCESS or VELOC_FAILURE, and print why. */
#ifndef FERMATA_VELOC_CORE_H
#define FERMATA_VELOC_CORE_H

#include <stddef.h>
#include <stdint.h>

#include "../fermata/fermata_core.h"
#include "defs.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fermata_veloc fermata_veloc;

/* NULL: it failed. `mpi` NULL: a process that is alone, `id` tells it from others. */
fermata_veloc* fermata_veloc_open(const fermata_mpi* mpi, unsigned id, const char* configuration);
int fermata_veloc_close(fermata_veloc*);
/* The client of the functions VELOC_…, which VELOC_Init() makes; NULL before and behind. */
int fermata_veloc_init(const fermata_mpi* mpi, unsigned id, const char* configuration);

/* `group`: NULL = those of checkpoints whose name has no group of its own. */
int fermata_veloc_protect(fermata_veloc*, int id, void* data, size_t count, size_t size, const char* group);
int fermata_veloc_unprotect(fermata_veloc*, int id, const char* group);
int fermata_veloc_clear(fermata_veloc*, const char* group);

int fermata_veloc_checkpoint_begin(fermata_veloc*, const char* name, int version);
int fermata_veloc_checkpoint_mem(fermata_veloc*, int mode, const int* ids, int count);
/* What the caller has packed, under an id. */
int fermata_veloc_put(fermata_veloc*, int id, const void* bytes, size_t size);
int fermata_veloc_checkpoint_end(fermata_veloc*, int success);
int fermata_veloc_wait(fermata_veloc*);
int fermata_veloc_finished(fermata_veloc*);

int fermata_veloc_restart_test(fermata_veloc*, const char* name, int below);
int fermata_veloc_restart_begin(fermata_veloc*, const char* name, int version);
int fermata_veloc_recover_mem(fermata_veloc*, int mode, const int* ids, int count);
/* What was saved under an id, until restart_end; NULL: nothing. */
const void* fermata_veloc_get(fermata_veloc*, int id, size_t* size);
int fermata_veloc_restart_end(fermata_veloc*, int success);

/* `routed`: VELOC_MAX_NAME bytes. */
int fermata_veloc_route_file(fermata_veloc*, const char* original, char* routed);
int fermata_veloc_cleanup(fermata_veloc*, const char* name);

#ifdef __cplusplus
}
#endif

#endif
