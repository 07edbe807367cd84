/* The last page but those of the CPU clocks in our vDSO's data (fermata_vdso_table): where its functions go.
   The image saves it; C, as the vDSO is. */
#ifndef FERMATA_SPLIT_VDSO_TABLE_H
#define FERMATA_SPLIT_VDSO_TABLE_H

#include <stdint.h>

/* Places in `now` and `kernel`; image.S has these numbers, too. */
enum FermataVdsoFunction {
    FERMATA_VDSO_CLOCK_GETTIME,
    FERMATA_VDSO_GETTIMEOFDAY,
    FERMATA_VDSO_TIME,
    FERMATA_VDSO_CLOCK_GETRES,
    FERMATA_VDSO_GETCPU,
    FERMATA_VDSO_FUNCTIONS
};

struct FermataVdsoTable {
    uint64_t now[8];    /* where the functions go: to the kernel's, or to whoever listens in between */
    uint64_t kernel[8]; /* the kernel's of this process; 0 = it has none: the system call */
    uint64_t cpu_clock; /* who listens to clocks of the CPU; 0 = nobody */
    uint64_t listens;   /* 1: `now` stays as it is when a kernel changes */
};

/* What somebody above needs to listen to the clocks: where they are read whoever listens. */
struct timespec;
struct timeval;
struct FermataVdsoDoors {
    struct FermataVdsoTable* table;
    int (*clock)(int, struct timespec*);
    int (*cpu_clock)(int, struct timespec*);
    int (*day)(struct timeval*, void*);
};

#endif
