/* Conjugate gradients for the Poisson equation on a square, with non-blocking collectives throughout: halos
 * travel by MPI_Ialltoallv while the interior is computed, dot products by MPI_Iallreduce while vectors are
 * updated. cg_poisson [STEPS [N [EVERY]]]      STEPS lines, one each EVERY iterations, on an N x N grid
 * Prints the residual with all its digits: two runs are equal or they are not. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size, n, rows, first;

/* The neighbours' rows. Not in the vectors themselves: Open MPI 4.1's non-blocking collectives take one base
 * address for both buffers as MPI_IN_PLACE. */
static double* halo[2];

static double* field(void) { return calloc((size_t)(rows + 1) * (size_t)n, sizeof(double)); }

/* Row `i` of the five-point operator, rows counted from 1. */
static void apply_row(const double* p, double* q, int i) {
    const double *above = i > 1 ? p + (size_t)(i - 1) * n : halo[0], *here = p + (size_t)i * n,
                 *below = i < rows ? p + (size_t)(i + 1) * n : halo[1];
    double* out = q + (size_t)i * n;
    for (int j = 0; j < n; ++j) {
        double left = j > 0 ? here[j - 1] : 0, right = j < n - 1 ? here[j + 1] : 0;
        out[j] = 4 * here[j] - above[j] - below[j] - left - right;
    }
}

static double dot(const double* a, const double* b) {
    double sum = 0;
    for (size_t i = (size_t)n; i < (size_t)(rows + 1) * n; ++i) sum += a[i] * b[i];
    return sum;
}

/* q = A p: the halo rows come while the interior is worked on. */
static void apply(double* p, double* q, int* counts, int* send_at, int* receive_at) {
    MPI_Request coming;
    MPI_Ialltoallv(p, counts, send_at, MPI_DOUBLE, halo[0], counts, receive_at, MPI_DOUBLE, MPI_COMM_WORLD,
                   &coming);
    for (int i = 2; i < rows; ++i) apply_row(p, q, i);
    MPI_Wait(&coming, MPI_STATUS_IGNORE);
    apply_row(p, q, 1);
    if (rows > 1) apply_row(p, q, rows);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int steps = argc > 1 ? atoi(argv[1]) : 40;
    n = argc > 2 ? atoi(argv[2]) : 1024;
    int every = argc > 3 ? atoi(argv[3]) : 25;
    first = (int)((long)n * rank / size);
    rows = (int)((long)n * (rank + 1) / size) - first;

    int *counts = calloc((size_t)size, sizeof(int)), *send_at = calloc((size_t)size, sizeof(int)),
        *receive_at = calloc((size_t)size, sizeof(int));
    if (rank > 0) counts[rank - 1] = n, send_at[rank - 1] = n, receive_at[rank - 1] = 0;
    if (rank < size - 1) counts[rank + 1] = n, send_at[rank + 1] = rows * n, receive_at[rank + 1] = n;

    halo[0] = calloc((size_t)n, 2 * sizeof(double));
    halo[1] = halo[0] + n;
    double *x = field(), *r = field(), *p = field(), *q = field();
    for (int i = 1; i <= rows; ++i)
        for (int j = 0; j < n; ++j) {
            double u = (first + i) / (n + 1.0), v = (j + 1) / (n + 1.0);
            r[(size_t)i * n + j] = p[(size_t)i * n + j] =
                sin(3 * M_PI * u) * v * (1 - v) + exp(-40 * (u * u + v * v));
        }
    double mine = dot(r, r), rr;
    MPI_Request request;
    MPI_Iallreduce(&mine, &rr, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    double start = MPI_Wtime();
    for (int step = 0; step < steps; ++step) {
        for (int k = 0; k < every; ++k) {
            double pq;
            apply(p, q, counts, send_at, receive_at);
            mine = dot(p, q);
            MPI_Iallreduce(&mine, &pq, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            double alpha = rr / pq, next;
            for (size_t i = (size_t)n; i < (size_t)(rows + 1) * n; ++i) r[i] -= alpha * q[i];
            mine = dot(r, r);
            MPI_Iallreduce(&mine, &next, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
            for (size_t i = (size_t)n; i < (size_t)(rows + 1) * n; ++i) x[i] += alpha * p[i];
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            double beta = next / rr;
            rr = next;
            for (size_t i = (size_t)n; i < (size_t)(rows + 1) * n; ++i) p[i] = r[i] + beta * p[i];
        }
        if (rank == 0)
            printf("cg %d %.17g %.17g\n", (step + 1) * every, sqrt(rr), x[n + n / 2]), fflush(stdout);
    }
    if (rank == 0) fprintf(stderr, "seconds %.3f\n", MPI_Wtime() - start);
    MPI_Finalize();
    return 0;
}
