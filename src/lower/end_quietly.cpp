#include "lower/end_quietly.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/clock.h"
#include "base/naps.h"

namespace fermata::lower {
namespace {

int channel = -1;  // to a launcher that speaks PMI-1

// (A server of PMI-2, which says PMI_JOBID, takes other words.)
void note_channel() {
    const char *number = getenv("PMI_FD"), *of_another_kind = getenv("PMI_JOBID");
    if (number && !of_another_kind) channel = atoi(number);
}

// Hydra kills all others when a rank's channel closes that has not finalized. The channel of this process is
// not used any more: the program stands.
void finalize() {
    constexpr std::string_view kWord = "cmd=finalize\n";
    constexpr int kPatienceMs = 1000;
    if (channel < 0 || ::send(channel, kWord.data(), kWord.size(), MSG_NOSIGNAL) < 0) return;
    pollfd answer{channel, POLLIN, 0};
    ::poll(&answer, 1, kPatienceMs);  // else Hydra finds nobody to answer, and says so
}

// A client that has said PMIx_Finalize is not missed. libpmix is there where the MPI library has opened it.
void finalize_pmix() {
    void* library = ::dlopen("libpmix.so.2", RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return;
    auto* initialized = reinterpret_cast<int (*)()>(::dlsym(library, "PMIx_Initialized"));
    auto* finalize = reinterpret_cast<int (*)(const void*, size_t)>(::dlsym(library, "PMIx_Finalize"));
    constexpr int kAtMost = 4;  // PMIx counts how often it was begun
    for (int i = 0; i < kAtMost && initialized && finalize && initialized(); ++i) finalize(nullptr, 0);
}

}  // namespace

void end_by_itself() {
    constexpr int64_t kPatienceMs = 500;
    std::atomic<bool> over = false;
    // The program may stand anywhere, also where it holds a lock that this needs.
    try {
        std::thread([&over] {
            finalize_pmix();
            over = true;
        }).detach();
    } catch (const std::system_error&) {
        over = true;
    }
    Naps naps(100);
    for (int64_t end = monotonic_ms() + kPatienceMs; !over && monotonic_ms() < end;) ::usleep(naps.next_us());
    ::_exit(0);
}

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
