/* Cases of `trap` that live in synchronous.c, cancelled.c and tools.c. */
#ifndef FERMATA_TESTS_SYNCHRONOUS_H
#define FERMATA_TESTS_SYNCHRONOUS_H
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "hold.h"

void synchronous(void);
void sparse_wait(void);
void blocked_ssend(void);
void first_ssend(void);
void taken_beside(void);
void cancelled(void);
void tools(void);
#endif
