// For bench/store.py: `restart MIB [1]` holds MIB of floating-point data and looks at one number of it every
// 20 ms, or writes to 1 % of its pages every second; says when. A restart's first line tells when the program
// runs again.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    size_t count = (size_t)atoi(argc > 1 ? argv[1] : "64") << 17;
    double* data = malloc(count * sizeof *data);
    unsigned long noise = 88172645463325252ul;
    for (size_t i = 0; i < count; ++i) {
        noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
        double x = (double)(i % 4096) / 4096;
        data[i] = 300 + 20 * x * (1 - x) + (double)(noise >> 40) * 1e-9;
    }
    int dirty = argc > 2 ? atoi(argv[2]) : 0;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double sum = 0;
    for (long step = 0;; ++step) {
        MPI_Barrier(MPI_COMM_WORLD);
        sum += data[count / 2];
        if (dirty && step % 50 == 0)
            for (size_t page = 0; page < count / 512; page += 100) data[page * 512] += 1;
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (rank == 0)
            printf("%ld %.4f %g\n", step, (double)now.tv_sec + (double)now.tv_nsec * 1e-9, sum),
                fflush(stdout);
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
}
