/* Counts signals of real time that come to the process while it exchanges messages: none is lost, and none
 * comes twice. Two timers (one_shots.h) go on meanwhile.
 * With HOLD_FILE it says READY, goes on until that file is there, and then says what it has counted, and
 * which timer stands still.
 *
 *   signalled */
#define _GNU_SOURCE
#include <signal.h>

#include "hold.h"
#include "one_shots.h"

static volatile sig_atomic_t heard;
static void hear(int number) {
    (void)number;
    ++heard;
}

int main(int argc, char** argv) {
    int rank, size, over = 0;
    const char* hold = getenv("HOLD_FILE");
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = hear;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    sigaction(SIGRTMIN + 3, &action, NULL);
    set_one_shots();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) puts("READY"), fflush(stdout);
    while (!over) {
        int mine = hold == NULL || access(hold, F_OK) == 0;
        MPI_Allreduce(&mine, &over, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        usleep(2000);
    }
    for (int which = 0; which < 2; ++which)
        if (!one_shot_goes_on(which)) printf("rank %d: timer %d stands still\n", rank, which), fflush(stdout);
    int counted = heard, *all = malloc((size_t)size * sizeof *all);
    MPI_Gather(&counted, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < size; ++i) printf("rank %d heard %d\n", i, all[i]);
    MPI_Finalize();
    return 0;
}
