// MPICH's mpiexec writes "BAD TERMINATION" among the program's lines when one of its processes dies of a
// signal. A shell need not say that a stopped job's SIGTERM ends it (docs/internals/job.md, the ranks of a
// stopped job): it leaves with the exit code that shells give for the signal.
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "split/loader/starters.h"
#include "starter/start.h"

namespace fermata::starter {
namespace {

char mark[PATH_MAX];  // "" in every other process

// The launcher's signal may be faster than the word that the job stops.
void wait_and_leave_if_stopped() {
    for (int i = 0; mark[0] != 0 && i < 50; ++i) {
        struct stat file;
        if (stat(mark, &file) == 0) _exit(file.st_size > 0 ? 0 : 128 + SIGTERM);
        usleep(10000);
    }
}

void terminated(int number) {
    wait_and_leave_if_stopped();
    signal(number, SIG_DFL);
    raise(number);
}

}  // namespace

void end_quietly() {
    snprintf(mark, sizeof mark, "%s/%s", remembered(split::kStarterDirectory), split::kLeaving);
    struct sigaction now;
    if (sigaction(SIGTERM, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
    struct sigaction ours = {};
    ours.sa_handler = terminated;
    sigaction(SIGTERM, &ours, nullptr);
}

}  // namespace fermata::starter

// bash has a handler of its own, which sends the signal to itself in the end.
extern "C" __attribute__((visibility("default"))) int kill(pid_t pid, int number) noexcept {
    if (number == SIGTERM && pid == getpid()) fermata::starter::wait_and_leave_if_stopped();
    return static_cast<int>(syscall(SYS_kill, pid, number));
}
