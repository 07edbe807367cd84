// A coupled pair, as climate codes are: two executables made of this file, MODEL=atm and MODEL=ocn, started
// as one world.
//
//     mpiexec -n 1 ./atm STEPS MS WORDS… : -n 2 ./ocn STEPS MS WORDS…
//
// Who belongs to which model is told by MPI_APPNUM. Every step each model sums up its own state, then the
// leaders exchange the sums. Rank 0 of a model prints its arguments, and of every tenth step its state and
// its MPI_APPNUM.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int appnum(void) {
    int *value, found;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &found);
    return found ? *value : -1;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, size, local_rank, local_size, steps = atoi(argv[1]), ms = atoi(argv[2]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm mine;
    MPI_Comm_split(MPI_COMM_WORLD, appnum(), rank, &mine);
    MPI_Comm_rank(mine, &local_rank);
    MPI_Comm_size(mine, &local_size);

    // The leaders by their models: the first of the world, and the first that is of another one.
    int first = local_rank == 0 ? rank : size, leaders[2] = {0, 0};
    int other = appnum() == 0 ? size : first;
    MPI_Allreduce(&other, &leaders[1], 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    int partner = appnum() == 0 ? leaders[1] : leaders[0];

    char line[4096];
    int length =
        snprintf(line, sizeof line, "%s app %d: %d of %d, arguments", MODEL, appnum(), local_size, size);
    for (int i = 3; i < argc; i++)
        length += snprintf(line + length, sizeof line - (size_t)length, " '%s'", argv[i]);
    // In one piece: mpiexec may put one rank's output into the line of another.
    snprintf(line + length, sizeof line - (size_t)length, "\n");
    if (local_rank == 0) fputs(line, stdout), fflush(stdout);

    unsigned long state = (unsigned long)rank * 77 + 5, sum = 0, theirs = 0;
    for (int step = 1; step <= steps; step++) {
        state = state * 2862933555777941757ul + 3037000493ul;
        MPI_Allreduce(&state, &sum, 1, MPI_UNSIGNED_LONG, MPI_SUM, mine);
        if (local_rank == 0)
            MPI_Sendrecv(&sum, 1, MPI_UNSIGNED_LONG, partner, 7, &theirs, 1, MPI_UNSIGNED_LONG, partner, 7,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Bcast(&theirs, 1, MPI_UNSIGNED_LONG, 0, mine);
        state ^= sum + (theirs >> 3);
        if (local_rank == 0 && step % 10 == 0)
            printf("%s app %d step %d: %016lx\n", MODEL, appnum(), step, state), fflush(stdout);
        usleep((useconds_t)ms * 1000);
    }
    MPI_Comm_free(&mine);
    MPI_Finalize();
    return 0;
}
