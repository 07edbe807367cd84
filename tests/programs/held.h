/* Cases of `trap` that live in held*.c. */
#ifndef FERMATA_TESTS_HELD_H
#define FERMATA_TESTS_HELD_H
#include "hold.h"

#ifdef HOLD_ELSEWHERE /* each file's own */
static int rank, size, right, left;
static inline void begin(void) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    right = (rank + 1) % size, left = (rank + size - 1) % size;
}
#endif

/* A sum over it, if all are in it; then it is freed. */
void use_comm(MPI_Comm* comm);

/* One element of `type` through ourselves, packed: what the type really picks. */
void hash_picked(MPI_Datatype type);

void held_communicators(void);
void held_types(void);
void held_collectives(void);
void held_neighbours(void);
void held_messages(void);
void held_windows(void);
void held_locks(void);
void passive_target(void);
void held_files(void);
void held_file_requests(void);
void held_sequential(void);
void held_one_sided(void);
void held_exposures(void);
void blocked_exposures(void);
void held_beginnings(void);
#ifndef OPEN_MPI
void held_persistent(void);
void held_inits(void);
void held_neighbour_inits(void);
void sessions_only(void);
#endif
#endif
