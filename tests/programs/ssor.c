/* A pipeline: SSOR on a box with five coupled unknowns a point, ranks in a plane, in the manner of the NAS
 * benchmark LU. Each sweep takes plane after plane: small messages come from the west and the north, the
 * plane is worked on, small messages go to the east and the south; then all of it back. ssor [STEPS [N
 * [PLANES [EVERY]]]]     STEPS lines, one each EVERY iterations, N x N x PLANES points Prints the residual
 * with all its digits (a maximum: no order of adding), at the end a hash of the whole field. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { unknowns = 5 };

static int nx, ny, nz, west, east, north, south;
static MPI_Comm grid;

/* The point (i, j) of plane k, each counted from 1; around them is one layer of zeros, or of the neighbours'
 * points. */
static double* at(double* field, int i, int j, int k) {
    return field + (((size_t)k * (size_t)(ny + 2) + (size_t)j) * (size_t)(nx + 2) + (size_t)i) * unknowns;
}

static double* field(void) {
    return calloc((size_t)(nx + 2) * (size_t)(ny + 2) * (size_t)(nz + 2) * unknowns, sizeof(double));
}

/* How the unknowns of a point act on each other, and how much each hears of the six points around it. */
static double coupled[unknowns][unknowns], weight[unknowns][3];
static const double diagonal = 6.4;

/* Columns of points (fixed i) and rows (fixed j) of planes from..to, as a message. */
static int pack(double* field, double* message, int i, int j, int from, int to) {
    int count = 0;
    for (int k = from; k <= to; ++k)
        for (int step = 1; step <= (i ? ny : nx); ++step, count += unknowns)
            memcpy(message + count, i ? at(field, i, step, k) : at(field, step, j, k),
                   unknowns * sizeof(double));
    return count;
}

static void unpack(double* field, const double* message, int i, int j, int from, int to) {
    for (int k = from; k <= to; ++k)
        for (int step = 1; step <= (i >= 0 ? ny : nx); ++step, message += unknowns)
            memcpy(i >= 0 ? at(field, i, step, k) : at(field, step, j, k), message,
                   unknowns * sizeof(double));
}

/* All four faces of a field go to the neighbours. */
static void exchange(double* u, double* buffers[8]) {
    const int to[4] = {west, east, north, south};
    MPI_Request requests[8];
    int count = 0;
    for (int side = 0; side < 4; ++side)
        MPI_Irecv(buffers[side], (side < 2 ? ny : nx) * nz * unknowns, MPI_DOUBLE, to[side], side ^ 1, grid,
                  &requests[count++]);
    const int i[4] = {1, nx, 0, 0}, j[4] = {0, 0, 1, ny};
    for (int side = 0; side < 4; ++side)
        MPI_Isend(buffers[4 + side], pack(u, buffers[4 + side], i[side], j[side], 1, nz), MPI_DOUBLE,
                  to[side], side, grid, &requests[count++]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    const int ghost_i[4] = {0, nx + 1, -1, -1}, ghost_j[4] = {0, 0, 0, ny + 1};
    for (int side = 0; side < 4; ++side)
        if (to[side] != MPI_PROC_NULL) unpack(u, buffers[side], ghost_i[side], ghost_j[side], 1, nz);
}

/* r = f - A u; the greatest of |r|. */
static double residual(double* u, double* f, double* r) {
    const long di = unknowns, dj = (nx + 2L) * unknowns, dk = dj * (ny + 2L);
    double greatest = 0;
    for (int k = 1; k <= nz; ++k)
        for (int j = 1; j <= ny; ++j)
            for (int i = 1; i <= nx; ++i) {
                const double* p = at(u, i, j, k);
                double *out = at(r, i, j, k), *right = at(f, i, j, k);
                for (int m = 0; m < unknowns; ++m) {
                    const double *q = p + m, *w = weight[m];
                    double sum = diagonal * *q - w[0] * q[-di] - (2 - w[0]) * q[di] - w[1] * q[-dj] -
                                 (2 - w[1]) * q[dj] - w[2] * q[-dk] - (2 - w[2]) * q[dk];
                    for (int l = 0; l < unknowns; ++l) sum += coupled[m][l] * p[l];
                    out[m] = right[m] - sum;
                    greatest = fmax(greatest, fabs(out[m]));
                }
            }
    return greatest;
}

/* One plane of a sweep: each point from its three neighbours that are done (d = -1: west, north, below; 1:
 * the others). */
static void plane(double* r, int k, int d) {
    const long step[3] = {d * (long)unknowns, d * (nx + 2L) * unknowns, d * (nx + 2L) * (ny + 2L) * unknowns};
    for (int row = 1; row <= ny; ++row)
        for (int column = 1; column <= nx; ++column) {
            double* p = at(r, d < 0 ? column : nx + 1 - column, d < 0 ? row : ny + 1 - row, k);
            for (int m = 0; m < unknowns; ++m) {
                double sum = 0, other = 0;
                for (int a = 0; a < 3; ++a) sum += (d < 0 ? weight[m][a] : 2 - weight[m][a]) * p[m + step[a]];
                for (int l = 0; l < m; ++l) other += coupled[m][l] * p[l];
                p[m] =
                    (d < 0 ? p[m] + sum - other : p[m] + (sum - other) / diagonal) / (d < 0 ? diagonal : 1);
            }
        }
}

/* A sweep over all planes, up (d = -1) or down: a plane waits for the neighbours' borders of the same plane.
 */
static void sweep(double* r, double* message, int d) {
    const int sources[2] = {d < 0 ? west : east, d < 0 ? north : south};
    const int targets[2] = {d < 0 ? east : west, d < 0 ? south : north};
    for (int step = 1; step <= nz; ++step) {
        int k = d < 0 ? step : nz + 1 - step;
        for (int a = 0; a < 2; ++a) {
            if (sources[a] == MPI_PROC_NULL) continue;
            MPI_Recv(message, (a == 0 ? ny : nx) * unknowns, MPI_DOUBLE, sources[a], 10 + a, grid,
                     MPI_STATUS_IGNORE);
            unpack(r, message, a == 0 ? (d < 0 ? 0 : nx + 1) : -1, d < 0 ? 0 : ny + 1, k, k);
        }
        plane(r, k, d);
        for (int a = 0; a < 2; ++a) {
            if (targets[a] == MPI_PROC_NULL) continue;
            int count = pack(r, message, a == 0 ? (d < 0 ? nx : 1) : 0, d < 0 ? ny : 1, k, k);
            MPI_Send(message, count, MPI_DOUBLE, targets[a], 10 + a, grid);
        }
    }
}

/* FNV-1a of all bits of the inner points; ranks are told apart by their number. */
static uint64_t hash(double* u, int rank) {
    uint64_t sum = 14695981039346656037u ^ (uint64_t)rank;
    for (int k = 1; k <= nz; ++k)
        for (int j = 1; j <= ny; ++j)
            for (const double *p = at(u, 1, j, k), *end = p + (size_t)nx * unknowns; p < end; ++p) {
                uint64_t bits;
                memcpy(&bits, p, sizeof bits);
                sum = (sum ^ bits) * 1099511628211u;
            }
    return sum;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size, dims[2] = {0, 0}, periods[2] = {0, 0}, place[2];
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, 2, place);
    MPI_Cart_shift(grid, 0, 1, &west, &east);
    MPI_Cart_shift(grid, 1, 1, &north, &south);
    int steps = argc > 1 ? atoi(argv[1]) : 40, n = argc > 2 ? atoi(argv[2]) : 48,
        every = argc > 4 ? atoi(argv[4]) : 5;
    nz = argc > 3 ? atoi(argv[3]) : n;
    const int first_x = n * place[0] / dims[0], first_y = n * place[1] / dims[1];
    nx = n * (place[0] + 1) / dims[0] - first_x, ny = n * (place[1] + 1) / dims[1] - first_y;

    for (int m = 0; m < unknowns; ++m)
        for (int l = 0; l < unknowns; ++l) coupled[m][l] = 0.02 * ((m * 3 + l * 5) % 7 - 3);
    for (int m = 0; m < unknowns; ++m)
        for (int a = 0; a < 3; ++a) weight[m][a] = 1 + 0.1 * ((m + 2 * a) % 5 - 2);
    double *u = field(), *f = field(), *r = field(), *buffers[8];
    for (int side = 0; side < 8; ++side)
        buffers[side] = malloc(sizeof(double) * unknowns * (size_t)(nx > ny ? nx : ny) * (size_t)nz);
    for (int k = 1; k <= nz; ++k)
        for (int j = 1; j <= ny; ++j)
            for (int i = 1; i <= nx; ++i)
                for (int m = 0; m < unknowns; ++m)
                    at(f, i, j, k)[m] =
                        sin(0.3 * (first_x + i) + m) * cos(0.2 * (first_y + j)) + 0.01 * k * (m - 1);

    double start = MPI_Wtime();
    for (int step = 1; step <= steps; ++step) {
        double mine = 0, all;
        for (int iteration = 0; iteration < every; ++iteration) {
            exchange(u, buffers);
            mine = residual(u, f, r);
            sweep(r, buffers[0], -1);
            sweep(r, buffers[0], 1);
            for (int k = 1; k <= nz; ++k)
                for (int j = 1; j <= ny; ++j) {
                    double *to = at(u, 1, j, k), *by = at(r, 1, j, k);
                    for (int p = 0; p < nx * unknowns; ++p) to[p] += 1.1 * by[p];
                }
        }
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, grid);
        if (rank == 0) printf("ssor %d %.17g\n", step * every, all), fflush(stdout);
    }
    uint64_t mine = hash(u, rank), all;
    MPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, grid);
    if (rank == 0) printf("ssor field %016llx\n", (unsigned long long)all), fflush(stdout);
    if (rank == 0) fprintf(stderr, "seconds %.3f\n", MPI_Wtime() - start);
    MPI_Finalize();
    return 0;
}
