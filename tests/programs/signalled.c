/* Counts signals of real time that come to the process while it exchanges messages: none is lost, and none
 * comes twice. Two timers, of the process and of a thread of libc's, are set again by each signal of theirs.
 * With HOLD_FILE it says READY, goes on until that file is there, and then says what it has counted, and
 * which timer stands still.
 *
 *   signalled */
#define _GNU_SOURCE
#include <signal.h>
#include <time.h>

#include "hold.h"

static volatile sig_atomic_t heard;
static void hear(int number) {
    (void)number;
    ++heard;
}

static timer_t alone, threaded;
static volatile int ticks[2];
static const struct itimerspec soon = {{0, 0}, {0, 5000000}};
static void tick(int number) {
    (void)number;
    ++ticks[0];
    timer_settime(alone, 0, &soon, NULL);
}
static void tick_in_thread(union sigval value) {
    ticks[1] += value.sival_int == 17;
    timer_settime(threaded, 0, &soon, NULL);
}
static void set_timers(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 5};
    struct sigevent call = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = tick_in_thread};
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    call.sigev_value.sival_int = 17;
    sigaction(SIGRTMIN + 5, &action, NULL);
    timer_create(CLOCK_MONOTONIC, &event, &alone);
    timer_create(CLOCK_MONOTONIC, &call, &threaded);
    timer_settime(alone, 0, &soon, NULL);
    timer_settime(threaded, 0, &soon, NULL);
}
static void check_timers(int rank) {
    for (int which = 0; which < 2; ++which) {
        int before = ticks[which];
        for (int i = 0; i < 3000 && ticks[which] < before + 2; ++i) usleep(1000);
        if (ticks[which] < before + 2)
            printf("rank %d: timer %d stands still\n", rank, which), fflush(stdout);
    }
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
    set_timers();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) puts("READY"), fflush(stdout);
    while (!over) {
        int mine = hold == NULL || access(hold, F_OK) == 0;
        MPI_Allreduce(&mine, &over, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        usleep(2000);
    }
    check_timers(rank);
    int counted = heard, *all = malloc((size_t)size * sizeof *all);
    MPI_Gather(&counted, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < size; ++i) printf("rank %d heard %d\n", i, all[i]);
    MPI_Finalize();
    return 0;
}
