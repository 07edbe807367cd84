/* Threads that nobody's signal reaches: they have blocked all 64 by the raw system call, running, in a system
 * call, waiting for signals themselves; and a program that has taken the last signal for itself.
 *
 * Right after a checkpoint and after a restart: masks and the handler are as the program made them, its own
 * SIGRTMAX, SIGUSR1 and SIGUSR2 arrive, nobody has seen another signal or EINTR. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>

#include "hold.h"

#define ALL (~0UL)
#define UNBLOCKABLE (1UL << (SIGKILL - 1) | 1UL << (SIGSTOP - 1))
#define LAST 64 /* above SIGRTMAX, as this program may know it */
enum { SPINS, READS, SLEEPS, WAITS, LISTENS, THREADS };

struct kernel_action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

static atomic_int over, ready, wrong, usr1;
static volatile sig_atomic_t hit[65];
static int ends[2];

static void on(int number) { hit[number]++; }
__attribute__((naked)) static void restorer(void) { __asm__("mov $15, %eax\n\tsyscall"); }

static unsigned long mask(int how, const unsigned long* set) {
    unsigned long old = 0;
    syscall(SYS_rt_sigprocmask, how, set, &old, 8);
    return old;
}
static int closed(void) { return (mask(SIG_BLOCK, NULL) | UNBLOCKABLE) == ALL; }

static void look(int good) {
    if (!good) wrong++;
}

static void read_one(void) {
    char byte = 0;
    look(read(ends[0], &byte, 1) == 1 && byte == 'x');
}
static void sleep_on(void) {
    struct timespec pause = {0, 20000000};
    look(clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL) == 0 || errno == EINTR);
}
/* A set of the kernel's, with all 64 in it. */
static void wait_for_one(void) {
    unsigned long all = ALL;
    siginfo_t info;
    long number = syscall(SYS_rt_sigtimedwait, &all, &info, NULL, 8);
    if (number == SIGUSR1) usr1++;
    look(number == SIGUSR1);
}
static void listen_for_one(int fd) {
    struct signalfd_siginfo info;
    ssize_t size = read(fd, &info, sizeof info);
    if (size == sizeof info && info.ssi_signo == SIGUSR1) usr1++;
    look(size == sizeof info && info.ssi_signo == SIGUSR1);
}

static void* stubborn(void* kind) {
    const unsigned long all = ALL;
    mask(SIG_SETMASK, &all);
    int fd = (long)kind == LISTENS ? (int)syscall(SYS_signalfd4, -1, &all, 8, SFD_CLOEXEC) : -1;
    ready++;
    switch ((long)kind) {
        case SPINS:
            for (volatile double x = 1; !over;) x = x * 1.0000001 + 1e-9;
            break;
        case READS:
            read_one();
            break;
        case SLEEPS:
            while (!over) sleep_on();
            break;
        case WAITS:
            while (!over) wait_for_one();
            break;
        case LISTENS:
            while (!over) listen_for_one(fd);
    }
    look(closed());
    return NULL;
}

static int own_last(void) {
    struct kernel_action now = {0};
    syscall(SYS_rt_sigaction, LAST, NULL, &now, 8);
    return now.handler == on;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    CHECK(pipe(ends) == 0);
    pthread_t thread[THREADS];
    for (long kind = 0; kind < THREADS; ++kind)
        CHECK(pthread_create(&thread[kind], NULL, stubborn, (void*)kind) == 0);
    struct sigaction action = {.sa_handler = on};
    CHECK(sigaction(SIGRTMAX, &action, NULL) == 0 && sigaction(SIGUSR2, &action, NULL) == 0);
    struct kernel_action last = {on, 0x04000000 /* SA_RESTORER */, restorer, ALL};
    CHECK(syscall(SYS_rt_sigaction, LAST, &last, NULL, 8) == 0);
    while (ready != THREADS) usleep(1000);
    raise(SIGRTMAX);
    raise(SIGUSR2);
    const unsigned long all = ALL;
    unsigned long before = mask(SIG_SETMASK, &all);
    usleep(20000);
    hold(); /* the main thread with all signals blocked, too */
    CHECK(closed());
    mask(SIG_SETMASK, &before);
    CHECK(own_last());
    raise(SIGRTMAX);
    raise(SIGUSR2);
    raise(LAST);
    over = 1;
    pthread_kill(thread[WAITS], SIGUSR1);
    pthread_kill(thread[LISTENS], SIGUSR1);
    CHECK(write(ends[1], "x", 1) == 1);
    for (int kind = 0; kind < THREADS; ++kind) pthread_join(thread[kind], NULL);
    const int same = SIGRTMAX == LAST; /* natively */
    CHECK(wrong == 0 && usr1 == 2 && hit[SIGUSR2] == 2);
    CHECK(hit[SIGRTMAX] == 2 + same && hit[LAST] == 1 + 2 * same);
    verdict("stubborn");
    MPI_Finalize();
    return 0;
}
