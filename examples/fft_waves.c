/* Waves in a periodic box, stepped in Fourier space with FFTW's MPI transforms: all-to-all communication most
 * of the time. fft_waves [STEPS [N [EVERY]]]      STEPS lines, one each EVERY time steps, on an N x N x N
 * grid Prints sums with all their digits: two runs are equal or they are not. */
#include <complex.h>
#include <fftw3-mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int steps = argc > 1 ? atoi(argv[1]) : 40, every = argc > 3 ? atoi(argv[3]) : 4;
    ptrdiff_t n = argc > 2 ? atoi(argv[2]) : 64, planes, first;
    ptrdiff_t room = fftw_mpi_local_size_3d(n, n, n, MPI_COMM_WORLD, &planes, &first);
    fftw_complex* u = fftw_alloc_complex((size_t)room);
    /* Estimated plans: measured ones depend on the moment, and so would the last digit. */
    fftw_plan there = fftw_mpi_plan_dft_3d(n, n, n, u, u, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_ESTIMATE);
    fftw_plan back = fftw_mpi_plan_dft_3d(n, n, n, u, u, MPI_COMM_WORLD, FFTW_BACKWARD, FFTW_ESTIMATE);
    for (ptrdiff_t i = 0; i < planes; ++i)
        for (ptrdiff_t j = 0; j < n; ++j)
            for (ptrdiff_t k = 0; k < n; ++k) {
                double x = (first + i) * 2 * M_PI / n, y = j * 2 * M_PI / n, z = k * 2 * M_PI / n;
                u[(i * n + j) * n + k] =
                    (1 + 0.3 * cos(x) * sin(2 * y)) * cexp(I * (cos(z) + 0.5 * sin(x + y)));
            }
    double start = MPI_Wtime();
    for (int step = 0; step < steps; ++step) {
        for (int t = 0; t < every; ++t) {
            const double dt = 1e-3;
            for (ptrdiff_t i = 0; i < planes * n * n; ++i) u[i] *= cexp(-I * dt * cabs(u[i]) * cabs(u[i]));
            fftw_execute(there);
            for (ptrdiff_t i = 0; i < planes; ++i)
                for (ptrdiff_t j = 0; j < n; ++j)
                    for (ptrdiff_t k = 0; k < n; ++k) {
                        double a = first + i < n / 2 ? first + i : first + i - n, b = j < n / 2 ? j : j - n,
                               c = k < n / 2 ? k : k - n;
                        u[(i * n + j) * n + k] *=
                            cexp(-0.5 * I * dt * (a * a + b * b + c * c)) / ((double)n * n * n);
                    }
            fftw_execute(back);
        }
        double mine[2] = {0, 0}, all[2];
        for (ptrdiff_t i = 0; i < planes * n * n; ++i) {
            mine[0] += creal(u[i]) * (1 + i % 7);
            mine[1] += cabs(u[i]) * cabs(u[i]);
        }
        MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == 0) printf("fft %d %.17g %.17g\n", (step + 1) * every, all[0], all[1]), fflush(stdout);
    }
    if (rank == 0) fprintf(stderr, "seconds %.3f\n", MPI_Wtime() - start);
    fftw_destroy_plan(there);
    fftw_destroy_plan(back);
    fftw_free(u);
    fftw_mpi_cleanup();
    MPI_Finalize();
    return 0;
}
