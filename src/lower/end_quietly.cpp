#include "lower/end_quietly.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

namespace fermata::lower {

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
