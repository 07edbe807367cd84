/* Cases of `trap` that live in held.c. */
#ifndef FERMATA_TESTS_HELD_H
#define FERMATA_TESTS_HELD_H
#include "hold.h"

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
#ifndef OPEN_MPI
void held_persistent(void);
void sessions_only(void);
#endif
#endif
