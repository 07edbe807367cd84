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
#include <utility>

#include "split/process/child.h"
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

// Moments that are left to a timer: [seconds, parts of one]; nothing of them for one that is not set.
using Left = std::pair<long, long>;

Left left_of(const Json& saved) { return {saved.at(0).get<long>(), saved.at(1).get<long>()}; }

Json intervals() {
    Json intervals = Json::array();
    for (int which : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
        itimerval timer = {};
        getitimer(static_cast<__itimer_which>(which), &timer);
        intervals.push_back({timer.it_value.tv_sec, timer.it_value.tv_usec, timer.it_interval.tv_sec,
                             timer.it_interval.tv_usec});
    }
    return intervals;
}

Json posix_timers(Lines& warnings) {
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
    return posix;
}

// True of an interval timer of the wall clock that stands between its signal and the moment when somebody
// takes that: it is set anew only then.
bool stands_still(const Json& real) {
    const bool repeats = real.at(2) != 0 || real.at(3) != 0;
    return repeats && left_of(real) == Left{};
}

// True if a timer went off between two looks at all of them: it has ended, or begun anew.
bool went_off(const Json& before, const Json& after) {
    auto one_did = [](const Left& was, const Left& is) {
        return is > was || (is == Left{} && was != Left{});
    };
    for (size_t i = 0; i < after.at("intervals").size(); ++i)
        if (one_did(left_of(before.at("intervals").at(i)), left_of(after.at("intervals").at(i)))) return true;
    const Json &was = before.at("posix"), &is = after.at("posix");
    if (was.size() != is.size()) return true;
    for (size_t i = 0; i < is.size(); ++i)
        if (one_did(left_of(was.at(i).at("left")), left_of(is.at(i).at("left")))) return true;
    return stands_still(after.at("intervals").at(0));
}

}  // namespace

Alarms capture_alarms(Lines& warnings) {
    constexpr int kLooks = 20;  // a timer may be faster than they are
    auto look = [](Lines& lines) { return Json{{"intervals", intervals()}, {"posix", posix_timers(lines)}}; };
    Alarms alarms;
    Lines lines;
    alarms.timers = look(lines);
    for (int i = 0; i < kLooks; ++i) {
        const Json before = std::move(alarms.timers);
        lines.clear();
        alarms.waiting = waiting_signals();
        alarms.own = threads::note_own_signals(lines);
        alarms.timers = look(lines);
        if (!went_off(before, alarms.timers)) break;
    }
    // One that is faster than the looks goes off at once.
    if (Json& real = alarms.timers.at("intervals").at(0); stands_still(real)) real.at(1) = 1;
    warnings.insert(warnings.end(), lines.begin(), lines.end());
    return alarms;
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
