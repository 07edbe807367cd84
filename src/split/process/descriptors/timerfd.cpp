// Timers as descriptors (timerfd): the time that was left runs on.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/proc_text.h"
#include "split/process/descriptors/restore.h"
#include "split/process/descriptors/saved.h"

namespace fermata::split::process::descriptors {
namespace {

bool is(const Entry& entry) { return entry.is_anonymous("[timerfd]"); }

// Expirations that nobody has read, and the time that is left, of one moment: a timer that goes off between
// two looks would be in neither.
struct Look {
    unsigned long long ticks = 0;
    itimerspec left = {};
};

unsigned long long ticks_in(const std::string& fdinfo) {
    return std::strtoull(field(fdinfo, "ticks").c_str(), nullptr, 10);
}

Look look_at_timer(const Entry& entry) {
    constexpr int kLooks = 20;  // a timer may be faster than they are
    Look look{.ticks = ticks_in(entry.info)};
    for (int i = 0; i < kLooks; ++i) {
        timerfd_gettime(entry.fd, &look.left);
        const std::string now = read_proc("/proc/self/fdinfo/" + std::to_string(entry.fd));
        const auto before = std::exchange(look.ticks, ticks_in(now));
        if (look.ticks == before) break;
    }
    return look;
}

Json capture(Capture&, const Entry& entry) {
    auto [ticks, left] = look_at_timer(entry);
    int clock = std::atoi(field(entry.info, "clockid").c_str());
    long flags = std::strtol(field(entry.info, "settime flags").c_str(), nullptr, 8);
    // A moment of the wall clock stays that moment; moments of other clocks are distances.
    bool moment = (flags & TFD_TIMER_ABSTIME) != 0 &&
                  (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_ALARM) &&
                  (left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0);
    if (moment) {
        timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        left.it_value.tv_sec += now.tv_sec + (left.it_value.tv_nsec + now.tv_nsec) / 1000000000;
        left.it_value.tv_nsec = (left.it_value.tv_nsec + now.tv_nsec) % 1000000000;
    }
    return {{"clock", clock},
            {"set", moment ? flags & (TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET) : 0},
            {"ticks", ticks},
            {"left", Time{left.it_value}},
            {"interval", Time{left.it_interval}}};
}

Fd make(Restore& restore, const Description& one) {
    Fd fd(timerfd_create(one.saved.at("clock"), TFD_CLOEXEC | (one.flags & O_NONBLOCK)));
    if (!fd) return fd;
    itimerspec left = {one.saved.at("interval").get<Time>().value, one.saved.at("left").get<Time>().value};
    if (timerfd_settime(fd.get(), one.saved.at("set"), &left, nullptr) != 0) return {};
    auto ticks = one.saved.at("ticks").get<uint64_t>();
    constexpr unsigned long kSetTicks = _IOW('T', 0, uint64_t);  // TFD_IOC_SET_TICKS
    if (ticks != 0 && ioctl(fd.get(), kSetTicks, &ticks) != 0)
        restore.warnings.push_back(
            fmt::format("{}: {} expirations of the timer that were not read yet are lost (a kernel without "
                        "CONFIG_CHECKPOINT_RESTORE?)",
                        one.who, ticks));
    return fd;
}

}  // namespace

const Operations kTimerfd = {.kind = Kind::timerfd, .is = is, .capture = capture, .make = make};

}  // namespace fermata::split::process::descriptors
