// Interval timers and POSIX timers, with the time that was left.
//
// A timer_t of glibc is the kernel's number (or points to a structure that holds it), so POSIX timers must
// come back with the same numbers: Linux 6.15 has PR_TIMER_CREATE_RESTORE_IDS; before, numbers count up, so
// timers are made and deleted until the number is reached.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>

#include <cstdlib>

#include "split/process/parts.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"

namespace fermata::split::process {
namespace {

constexpr int kRestoreIds = 77;  // PR_TIMER_CREATE_RESTORE_IDS
constexpr int kThreadId = 4;     // SIGEV_THREAD_ID

// The kernel's struct sigevent.
struct KernelSigevent {
    uint64_t value;
    int32_t signal;
    int32_t notify;
    int32_t tid;
    int32_t pad[11];
};
static_assert(sizeof(KernelSigevent) == 64);

int create_with_id(int wanted, int clock, KernelSigevent& event) {
    int id = wanted;
    if (raw::call(SYS_prctl, kRestoreIds, 1) == 0) {
        long error = raw::call(SYS_timer_create, clock, raw::word(&event), raw::word(&id));
        raw::call(SYS_prctl, kRestoreIds, 0);
        return error == 0 ? id : -1;
    }
    for (int attempt = 0; attempt < 1000000; ++attempt) {
        if (raw::call(SYS_timer_create, clock, raw::word(&event), raw::word(&id)) != 0) return -1;
        if (id == wanted) return id;
        raw::call(SYS_timer_delete, id);
        if (id > wanted) return -1;
    }
    return -1;
}

}  // namespace

Json capture_timers(Lines& warnings) {
    Json intervals = Json::array();
    for (int which : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
        itimerval timer = {};
        getitimer(static_cast<__itimer_which>(which), &timer);
        intervals.push_back({timer.it_value.tv_sec, timer.it_value.tv_usec, timer.it_interval.tv_sec,
                             timer.it_interval.tv_usec});
    }
    Json posix = Json::array();
    std::string text = read_proc("/proc/self/timers");
    for (size_t at = text.find("ID: "); at != std::string::npos;) {
        size_t next = text.find("\nID: ", at);
        std::string one = text.substr(at, next == std::string::npos ? next : next - at);
        at = next == std::string::npos ? next : next + 1;
        int id = std::atoi(one.c_str() + 4);
        std::string signal = field(one, "signal"), notify = field(one, "notify");
        int clock = std::atoi(field(one, "ClockID").c_str());
        itimerspec left = {};
        size_t slash = signal.find('/');
        if (raw::call(SYS_timer_gettime, id, raw::word(&left)) != 0 || slash == std::string::npos) continue;
        int kind = notify.compare(0, 4, "none") == 0     ? SIGEV_NONE
                   : notify.compare(0, 6, "thread") == 0 ? SIGEV_THREAD
                                                         : 0;
        int tid = 0;
        if (size_t dot = notify.find("/tid."); dot != std::string::npos) {
            kind |= kThreadId;
            tid = std::atoi(notify.c_str() + dot + 5);
        }
        // Clocks of one thread or process carry its pid; 0 in it means "self".
        if (clock < 0 && (~clock >> 3) != 0) {
            warnings.push_back("timer " + std::to_string(id) +
                               " runs on the CPU clock of one thread: not held");
            continue;
        }
        posix.push_back({{"id", id},
                         {"signal", std::atoi(signal.c_str())},
                         {"value", std::strtoull(signal.c_str() + slash + 1, nullptr, 16)},
                         {"notify", kind},
                         {"tid", tid},
                         {"clock", clock},
                         {"left", {left.it_value.tv_sec, left.it_value.tv_nsec}},
                         {"interval", {left.it_interval.tv_sec, left.it_interval.tv_nsec}}});
    }
    return {{"intervals", intervals}, {"posix", posix}};
}

void restore_all_timers(const Json& state, Lines& warnings) {
    for (const Json& saved : state.at("posix")) {
        int id = saved.at("id");
        KernelSigevent event = {};
        event.value = saved.at("value");
        event.signal = saved.at("signal");
        event.notify = saved.at("notify");
        if ((event.notify & kThreadId) != 0) event.tid = threads::new_tid(saved.at("tid"));
        if (create_with_id(id, saved.at("clock"), event) != id) {
            warnings.push_back("timer " + std::to_string(id) + " could not be made again: it will not fire");
            continue;
        }
        itimerspec left = {{saved.at("interval").at(0), saved.at("interval").at(1)},
                           {saved.at("left").at(0), saved.at("left").at(1)}};
        raw::call(SYS_timer_settime, id, 0, raw::word(&left), 0);
    }
    int which = ITIMER_REAL;
    for (const Json& saved : state.at("intervals")) {
        itimerval timer = {{saved.at(2), saved.at(3)}, {saved.at(0), saved.at(1)}};
        if (timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0)
            setitimer(static_cast<__itimer_which>(which), &timer, nullptr);
        ++which;
    }
}

}  // namespace fermata::split::process
