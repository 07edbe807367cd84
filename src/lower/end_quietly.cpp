#include "lower/end_quietly.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <string_view>

namespace fermata::lower {
namespace {

int channel = -1;  // to a launcher that speaks PMI-1

// (A server of PMI-2, which says PMI_JOBID, takes other words.)
void note_channel() {
    const char *number = getenv("PMI_FD"), *of_another_kind = getenv("PMI_JOBID");
    if (number && !of_another_kind) channel = atoi(number);
}

// Hydra kills all others when a rank's channel closes that has not finalized. Of this process nothing is read
// or written there any more: the program stands.
void finalize() {
    constexpr std::string_view kWord = "cmd=finalize\n";
    constexpr int kPatienceMs = 1000;
    if (channel < 0 || ::send(channel, kWord.data(), kWord.size(), MSG_NOSIGNAL) < 0) return;
    pollfd answer{channel, POLLIN, 0};
    ::poll(&answer, 1, kPatienceMs);  // else Hydra finds nobody to answer, and says so
}

}  // namespace

void end_on_launchers_signal() {
    note_channel();
    struct sigaction action {};
    action.sa_handler = [](int) {
        finalize();
        ::_exit(128 + SIGTERM);
    };
    ::sigaction(SIGTERM, &action, nullptr);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
}

void end_with_launcher() {
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &only, nullptr);
    const timespec most{20, 0};  // the root ends this process; this is for the case that it is gone
    ::sigtimedwait(&only, nullptr, &most);
    ::_exit(128 + SIGTERM);
}

}  // namespace fermata::lower
