/* OpenMP in compute, MPI between parallel regions (MPI_THREAD_FUNNELED): 4 threads per rank. */
#include <omp.h>

#include "hold.h"

enum { N = 200000 };
static double x[N];

int main(int argc, char** argv) {
    int rank, size, level, steps = argc > 1 ? atoi(argv[1]) : 20, rounds = argc > 2 ? atoi(argv[2]) : 4;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    CHECK(level >= MPI_THREAD_FUNNELED);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    omp_set_num_threads(4);
    for (int i = 0; i < N; ++i) x[i] = 1.0 / (1 + i + rank);
    for (int step = 0; step < steps; ++step) {
        double edge, local[4] = {0}, total[4];
        int threads = 0;
        for (int r = 0; r < rounds; ++r) {
#pragma omp parallel
            {
                int t = omp_get_thread_num();
                if (t == 0) threads = omp_get_num_threads();
                double sum = 0;
                /* one static block a thread: the order of additions is fixed */
#pragma omp for schedule(static)
                for (int i = 0; i < N; ++i) {
                    x[i] = x[i] * 0.999 + 1e-6 * (i % 17);
                    sum += x[i];
                }
                local[t] = sum;
            }
        }
        CHECK(threads == 4);
        MPI_Allreduce(local, total, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Sendrecv(&x[N - 1], 1, MPI_DOUBLE, (rank + 1) % size, 0, &edge, 1, MPI_DOUBLE,
                     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        x[0] += 1e-3 * edge;
        hash_bytes(total, sizeof total);
        if (rank == 0) {
            printf("step %d %016llx\n", step, hash_state);
            fflush(stdout);
        }
    }
    verdict("hybrid");
    MPI_Finalize();
    return 0;
}
