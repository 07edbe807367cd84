/* Writes what each clock and the kernel's random numbers say, step by step: a copy of this rank must be told
 * the same. Ends with code 3 where a time goes back.
 *
 *   clocks STEPS */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

enum { REAL, MONOTONIC, PROCESS, THREAD, DAY, SECOND, USAGE, TICKS, CPU, WTIME, CLOCKS };

static long long of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* As Fortran's OPEN does: for writing, too, where the user may. */
static void read_uptime(char* text, int size) {
    FILE* file = fopen("/proc/uptime", "r+");
    if (file == NULL) file = fopen("/proc/uptime", "r");
    if (file == NULL || fgets(text, size, file) == NULL) exit(5);
    fclose(file);
}

static void read_all(long long* now) {
    struct timeval day;
    struct rusage usage;
    struct tms ticks;
    now[REAL] = of(CLOCK_REALTIME);
    now[MONOTONIC] = of(CLOCK_MONOTONIC);
    now[PROCESS] = of(CLOCK_PROCESS_CPUTIME_ID);
    now[THREAD] = of(CLOCK_THREAD_CPUTIME_ID);
    gettimeofday(&day, NULL);
    now[DAY] = day.tv_sec * 1000000ll + day.tv_usec;
    now[SECOND] = time(NULL);
    getrusage(RUSAGE_SELF, &usage);
    now[USAGE] = usage.ru_utime.tv_sec * 1000000ll + usage.ru_utime.tv_usec;
    times(&ticks);
    now[TICKS] = ticks.tms_utime;
    now[CPU] = clock();
    now[WTIME] = (long long)(1e9 * MPI_Wtime());
}

int main(int argc, char** argv) {
    int rank;
    long long last[CLOCKS] = {0}, now[CLOCKS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < atoi(argv[1]); ++step) {
        int sum;
        unsigned number = 0;
        char uptime[80];
        MPI_Allreduce(&step, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        usleep(3000);
        read_all(now);
        if (getrandom(&number, sizeof number, 0) != sizeof number) return 4;
        read_uptime(uptime, sizeof uptime);
        uptime[strcspn(uptime, "\n")] = 0;
        if (rank == 0) printf("step %d %d %u %s", step, sum, number, uptime);
        for (int i = 0; i < CLOCKS; ++i) {
            if (rank == 0) printf(" %lld", now[i]);
            if (now[i] < last[i]) {
                fprintf(stderr, "clock %d of rank %d went back from %lld to %lld\n", i, rank, last[i],
                        now[i]);
                return 3;
            }
            last[i] = now[i];
        }
        if (rank == 0) printf("\n");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
