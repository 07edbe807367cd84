/* Explicit hydrodynamics on a square, ranks in a plane, communicating in the manner of CloverLeaf: several
 * fields go to the neighbours in one message a side before each half step, the time step is the smallest of
 * all ranks', and rank 0 prints a summary now and then. hydro [STEPS [N [EVERY]]]      STEPS lines, one each
 * EVERY time steps, on an N x N grid The gas (gamma = 1.4) is moved by the two directions in turn, with
 * limited slopes and Rusanov's fluxes. Prints all digits of the summary, at the end a hash of all fields. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { density, energy, along_x, along_y, fields, halo = 2 };

static const double heat_ratio = 1.4;
static int nx, ny, side[2][2]; /* neighbours: [direction][before, behind] */
static size_t line;
static double *gas[fields], *messages[4];
static MPI_Comm grid;

static size_t cell(int i, int j) { return (size_t)(j + halo) * line + (size_t)(i + halo); }

static double pressure(double rho, double e, double mx, double my) {
    return (heat_ratio - 1) * (e - 0.5 * (mx * mx + my * my) / rho);
}

/* Copies `halo` lines of cells of all fields, from cell `first` of the direction on, into a message or out of
 * one. */
static int lines(int direction, int first, double* message, int out) {
    int count = 0,
        length = direction == 0 ? ny : nx + 2 * halo; /* y comes second, and takes the corners along */
    for (int f = 0; f < fields; ++f)
        for (int depth = 0; depth < halo; ++depth)
            for (int s = 0; s < length; ++s, ++count) {
                double* p =
                    gas[f] + (direction == 0 ? cell(first + depth, s) : cell(s - halo, first + depth));
                if (out)
                    *p = message[count];
                else
                    message[count] = *p;
            }
    return count;
}

/* Walls reflect: the cells behind them are those before them, with the momentum turned. */
static void reflect(int direction, int behind) {
    int n = direction == 0 ? nx : ny;
    for (int depth = 0; depth < halo; ++depth)
        for (int s = -halo; s < (direction == 0 ? ny : nx) + halo; ++s) {
            int from = behind ? n - 1 - depth : depth, to = behind ? n + depth : -1 - depth;
            size_t a = direction == 0 ? cell(from, s) : cell(s, from),
                   b = direction == 0 ? cell(to, s) : cell(s, to);
            for (int f = 0; f < fields; ++f) gas[f][b] = f == along_x + direction ? -gas[f][a] : gas[f][a];
        }
}

static void exchange(void) {
    for (int direction = 0; direction < 2; ++direction) {
        int n = direction == 0 ? nx : ny, count = 0;
        int size = fields * halo * (direction == 0 ? ny : nx + 2 * halo);
        MPI_Request requests[4];
        for (int behind = 0; behind < 2; ++behind)
            if (side[direction][behind] != MPI_PROC_NULL)
                MPI_Irecv(messages[behind], size, MPI_DOUBLE, side[direction][behind], 1 - behind, grid,
                          &requests[count++]);
        for (int behind = 0; behind < 2; ++behind)
            if (side[direction][behind] != MPI_PROC_NULL) {
                lines(direction, behind ? n - halo : 0, messages[2 + behind], 0);
                MPI_Isend(messages[2 + behind], size, MPI_DOUBLE, side[direction][behind], behind, grid,
                          &requests[count++]);
            }
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
        for (int behind = 0; behind < 2; ++behind)
            if (side[direction][behind] != MPI_PROC_NULL)
                lines(direction, behind ? n : -halo, messages[behind], 1);
            else
                reflect(direction, behind);
    }
}

/* The longest step that no wave crosses a cell in, over all ranks. */
static double time_step(double width) {
    double fastest = 0;
    for (int j = 0; j < ny; ++j)
        for (int i = 0; i < nx; ++i) {
            size_t c = cell(i, j);
            double rho = gas[density][c], mx = gas[along_x][c], my = gas[along_y][c];
            double sound = sqrt(heat_ratio * pressure(rho, gas[energy][c], mx, my) / rho);
            fastest = fmax(fastest, sound + fmax(fabs(mx), fabs(my)) / rho);
        }
    double mine = 0.4 * width / fastest, all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MIN, grid);
    return all;
}

static double slope(double before, double here, double behind) {
    double a = here - before, b = behind - here;
    return a * b <= 0 ? 0 : fabs(a) < fabs(b) ? a : b;
}

/* The flux between two states of the gas; `along` is the momentum in the direction of it. */
static void flux_between(const double* left, const double* right, int along, double* flux) {
    const double* states[2] = {left, right};
    double speed = 0, fluxes[2][fields];
    for (int s = 0; s < 2; ++s) {
        const double* q = states[s];
        double v = q[along] / q[density], p = pressure(q[density], q[energy], q[along_x], q[along_y]);
        speed = fmax(speed, fabs(v) + sqrt(heat_ratio * fabs(p) / q[density]));
        for (int f = 0; f < fields; ++f) fluxes[s][f] = v * q[f];
        fluxes[s][along] += p;
        fluxes[s][energy] += v * p;
    }
    for (int f = 0; f < fields; ++f)
        flux[f] = 0.5 * (fluxes[0][f] + fluxes[1][f] - speed * (right[f] - left[f]));
}

/* Moves the gas in one direction. `fluxes` has room for one line of cells. */
static void move(int direction, double ratio, double (*fluxes)[fields]) {
    int n = direction == 0 ? nx : ny, others = direction == 0 ? ny : nx;
    size_t step = direction == 0 ? 1 : line;
    for (int other = 0; other < others; ++other) {
        size_t start = direction == 0 ? cell(0, other) : cell(other, 0);
        for (int i = 0; i <= n; ++i) {
            size_t c = start + (size_t)i * step;
            double left[fields], right[fields];
            for (int f = 0; f < fields; ++f) {
                const double* q = gas[f] + c;
                left[f] = *(q - step) + 0.5 * slope(*(q - 2 * step), *(q - step), *q);
                right[f] = *q - 0.5 * slope(*(q - step), *q, q[step]);
            }
            flux_between(left, right, along_x + direction, fluxes[i]);
        }
        for (int i = 0; i < n; ++i)
            for (int f = 0; f < fields; ++f)
                gas[f][start + (size_t)i * step] -= ratio * (fluxes[i + 1][f] - fluxes[i][f]);
    }
}

/* What all ranks hold, added as whole numbers of 2^-50: no order of adding shows. */
static void summary(int step, double time, double area, int rank) {
    double sums[fields + 1] = {0};
    int64_t mine[fields + 1], all[fields + 1];
    for (int j = 0; j < ny; ++j)
        for (int i = 0; i < nx; ++i) {
            size_t c = cell(i, j);
            for (int f = 0; f < fields; ++f) sums[f] += gas[f][c] * area;
            sums[fields] +=
                pressure(gas[density][c], gas[energy][c], gas[along_x][c], gas[along_y][c]) * area;
        }
    for (int f = 0; f <= fields; ++f) mine[f] = llrint(ldexp(sums[f], 50));
    MPI_Reduce(mine, all, fields + 1, MPI_INT64_T, MPI_SUM, 0, grid);
    if (rank != 0) return;
    printf("hydro %d %.17g", step, time);
    for (int f = 0; f <= fields; ++f) printf(" %.17g", ldexp((double)all[f], -50));
    printf("\n");
    fflush(stdout);
}

/* FNV-1a of all bits of the inner cells; ranks are told apart by their number. */
static uint64_t hash(int rank) {
    uint64_t sum = 14695981039346656037u ^ (uint64_t)rank;
    for (int f = 0; f < fields; ++f)
        for (int j = 0; j < ny; ++j)
            for (int i = 0; i < nx; ++i) {
                uint64_t bits;
                memcpy(&bits, &gas[f][cell(i, j)], sizeof bits);
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
    for (int direction = 0; direction < 2; ++direction)
        MPI_Cart_shift(grid, direction, 1, &side[direction][0], &side[direction][1]);
    int steps = argc > 1 ? atoi(argv[1]) : 40, n = argc > 2 ? atoi(argv[2]) : 256,
        every = argc > 3 ? atoi(argv[3]) : 10;
    const int first_x = n * place[0] / dims[0], first_y = n * place[1] / dims[1];
    nx = n * (place[0] + 1) / dims[0] - first_x, ny = n * (place[1] + 1) / dims[1] - first_y;
    line = (size_t)(nx + 2 * halo);

    const size_t longest = (size_t)(nx > ny ? nx : ny) + 2 * halo;
    double(*fluxes)[fields] = calloc(longest, sizeof *fluxes);
    for (int m = 0; m < 4; ++m) messages[m] = calloc(longest * halo * fields, sizeof(double));
    for (int f = 0; f < fields; ++f) gas[f] = calloc(line * (size_t)(ny + 2 * halo), sizeof(double));
    for (int j = 0; j < ny; ++j)
        for (int i = 0; i < nx; ++i) {
            double x = (first_x + i + 0.5) / n, y = (first_y + j + 0.5) / n;
            gas[density][cell(i, j)] = x < 0.5 && y < 0.2 ? 1 : 0.2;
            gas[energy][cell(i, j)] = x < 0.5 && y < 0.2 ? 2.5 : 0.2 + 0.05 * sin(9 * x) * cos(7 * y);
        }

    double start = MPI_Wtime(), time = 0;
    for (int step = 1; step <= steps * every; ++step) {
        double dt = time_step(1.0 / n);
        for (int half = 0; half < 2; ++half) {
            exchange();
            move((step + half) % 2, dt * n, fluxes);
        }
        time += dt;
        if (step % every == 0) summary(step, time, 1.0 / n / n, rank);
    }
    uint64_t mine = hash(rank), all;
    MPI_Reduce(&mine, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, grid);
    if (rank == 0) printf("hydro fields %016llx\n", (unsigned long long)all), fflush(stdout);
    if (rank == 0) fprintf(stderr, "seconds %.3f\n", MPI_Wtime() - start);
    MPI_Finalize();
    return 0;
}
