// A heat equation in C++ that saves its own state, and goes on from it on any number of ranks.
//     mpicxx heat.cpp -lfermata;   mpirun -n 4 ./heat [STEPS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fermata/fermata.hpp>

constexpr int nx = 96, ny = 64;

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int steps = argc > 1 ? std::atoi(argv[1]) : 200;
    const int first = nx * rank / size, last = nx * (rank + 1) / size, mine = last - first;
    std::vector<double> u(static_cast<size_t>(mine + 2) * ny),
        next(u);  // with a row of the neighbour on both sides
    if (first < nx / 2 && nx / 2 <= last) u[static_cast<size_t>(nx / 2 - first) * ny + ny / 2 - 1] = 1e6;
    const int up = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, down = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    try {
        fermata::Checkpoints state(MPI_COMM_WORLD, "heat-state", "keep=2");
        state.protect_array("u", &u[ny], {nx, ny}, {first, 0}, {mine, ny});
        for (int64_t step = state.restore().value_or(0); step < steps;) {
            std::fill_n(u.begin(), ny, 0.0);
            std::fill_n(u.end() - ny, ny, 0.0);
            MPI_Sendrecv(&u[static_cast<size_t>(mine) * ny], ny, MPI_DOUBLE, up, 0, &u[0], ny, MPI_DOUBLE,
                         down, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Sendrecv(&u[ny], ny, MPI_DOUBLE, down, 1, &u[static_cast<size_t>(mine + 1) * ny], ny,
                         MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 1; i <= mine; ++i)
                for (int j = 0; j < ny; ++j) {
                    const double* at = &u[static_cast<size_t>(i) * ny + static_cast<size_t>(j)];
                    next[static_cast<size_t>(at - u.data())] =
                        j == 0 || j == ny - 1 ? *at
                                              : *at + 0.2 * (at[-1] + at[1] + at[-ny] + at[ny] - 4 * *at);
                }
            std::copy(next.begin() + ny, next.end() - ny, u.begin() + ny);  // u is protected where it is
            if (++step % 50 == 0) state.save(step);
        }
        state.close();
    } catch (const fermata::CheckpointError& error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    double peak = *std::max_element(u.begin() + ny, u.end() - ny), all;
    MPI_Reduce(&peak, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) std::printf("step %d max %.16e\n", steps, all);
    MPI_Finalize();
}
