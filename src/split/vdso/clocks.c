/* CPU clocks of the upper half (image.S sends them here): the kernel's plus what earlier lives have used.
   Freestanding, no relocations. A thread may be stopped anywhere in here and go on in another process: then
   it asks again. */
#include <time.h>

#include "cpu_offsets.h"
#include "table.h"

/* Protected: exported, and reached without a relocation. */
extern struct FermataCpuOffsets fermata_vdso_cpu __attribute__((visibility("protected")));
extern struct FermataVdsoTable fermata_vdso_table __attribute__((visibility("protected")));

static long call(long number, long a, long b) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b) : "rcx", "r11", "memory");
    return result;
}

static int64_t of_thread(int32_t tid) {
    for (uint32_t i = 0; i < fermata_vdso_cpu.threads; ++i)
        if (fermata_vdso_cpu.thread[i].tid == tid) return fermata_vdso_cpu.thread[i].ns;
    return 0;
}

/* CPUCLOCK_PERTHREAD_MASK, and the process or thread that a negative clock is of; 0 = the caller's. */
static int64_t offset_of(int clock, int32_t pid) {
    int thread = clock == 3;
    int32_t whose = 0;
    if (clock < 0) {
        thread = (clock & 4) != 0;
        whose = ~(clock >> 3);
        if ((clock & 3) == 3) return 0; /* a clock behind a descriptor */
    }
    if (thread) return of_thread(whose != 0 ? whose : (int32_t)call(186, 0, 0));
    return whose == 0 || whose == pid ? fermata_vdso_cpu.process : 0;
}

/* The process that the offsets hold for, if it is this one. */
static int32_t owner(void) {
    int32_t pid = fermata_vdso_cpu.pid;
    return pid != 0 && pid == (int32_t)call(39, 0, 0) ? pid : 0;
}

__attribute__((visibility("protected"))) int fermata_vdso_cpu_clock(int clock, struct timespec* time) {
    const int64_t second = 1000000000;
    int64_t ns = 0;
    if (clock >= FERMATA_CPU_CLOCK && clock <= FERMATA_CPU_THREAD) {
        int32_t pid = owner();
        if (pid != 0 && clock == FERMATA_CPU_THREAD)
            ns = offset_of(3, pid);
        else if (pid != 0 && clock - FERMATA_CPU_CLOCK < FERMATA_CPU_VALUES)
            ns = fermata_vdso_cpu.value[clock - FERMATA_CPU_CLOCK];
    } else {
        for (;;) {
            int32_t pid = owner();
            int64_t process = fermata_vdso_cpu.process;
            long error = call(228, clock, (long)time);
            if (error != 0) return (int)error;
            ns = time->tv_sec * second + time->tv_nsec;
            if (pid != 0) ns += offset_of(clock, pid);
            if (process == fermata_vdso_cpu.process && pid == owner()) break;
        }
    }
    time->tv_sec = ns / second;
    time->tv_nsec = ns % second;
    return 0;
}

typedef int CpuClock(int clock, struct timespec* time);
__attribute__((visibility("hidden"))) int fermata_cpu_clock(int clock, struct timespec* time) {
    CpuClock* listener = (CpuClock*)fermata_vdso_table.cpu_clock;
    return listener != 0 ? listener(clock, time) : fermata_vdso_cpu_clock(clock, time);
}
