/* What the CPU clocks of a program show beyond those of its process: what earlier lives of it have used. Lies
   in our vDSO's data (fermata_vdso_cpu), which the image saves; C, as the vDSO is. */
#ifndef FERMATA_SPLIT_VDSO_CPU_OFFSETS_H
#define FERMATA_SPLIT_VDSO_CPU_OFFSETS_H

#include <stdint.h>

enum {
    /* Clocks that only our vDSO has, so that code above needs no other way to these numbers: a timespec of
       value i. */
    FERMATA_CPU_CLOCK = 0x464d00,
    FERMATA_CPU_THREAD = FERMATA_CPU_CLOCK + 0x80 /* of the calling thread, ns */
};
enum FermataCpuValue {
    FERMATA_CPU_USER, /* ns, as the next three */
    FERMATA_CPU_SYSTEM,
    FERMATA_CPU_CHILD_USER,
    FERMATA_CPU_CHILD_SYSTEM,
    FERMATA_CPU_MINOR_FAULTS, /* numbers, as those that follow */
    FERMATA_CPU_MAJOR_FAULTS,
    FERMATA_CPU_BLOCKS_READ,
    FERMATA_CPU_BLOCKS_WRITTEN,
    FERMATA_CPU_SWITCHES,
    FERMATA_CPU_PREEMPTIONS,
    FERMATA_CPU_VALUES
};

struct FermataThreadCpu {
    int32_t tid, unused;
    int64_t ns;
};
struct FermataCpuOffsets {
    volatile int32_t pid; /* of the process they hold for, not of its children; 0 = there are none */
    uint32_t threads;
    volatile int64_t process; /* CLOCK_PROCESS_CPUTIME_ID, ns */
    volatile int64_t value[FERMATA_CPU_VALUES];
    struct FermataThreadCpu thread[1024];
};

#endif
