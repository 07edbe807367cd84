// Waits with a relative timeout, which the stop signal would cut short.
//
// The stop handler issues an interrupted system call again when that is exact
// (src/split/threads/interrupted.h). Here the calls whose rest is not known to it are brought into that form:
// the timeout lies in a variable that the kernel itself updates. epoll_wait, sigtimedwait and semtimedop have
// no such form: they are called again with what is left when they returned EINTR, the process was stopped
// meanwhile and no handler of the application ran.
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "front/posix/next.h"
#include "front/posix/sender.h"
#include "split/threads/records.h"

namespace fermata::front::posix {
namespace {

Next<int(clockid_t, int, const timespec*, timespec*)> next_clock_nanosleep{"clock_nanosleep"};
Next<int(pollfd*, nfds_t, int)> next_poll{"poll"};
Next<int(int, epoll_event*, int, int, const sigset_t*)> next_epoll_pwait{"epoll_pwait"};
Next<int(const sigset_t*, siginfo_t*, const timespec*)> next_sigtimedwait{"sigtimedwait"};
Next<int(int, sembuf*, size_t, const timespec*)> next_semtimedop{"semtimedop"};

constexpr int64_t kSecond = 1000000000;

// clock_nanosleep with the rest written over the request; returns 0 or an error number.
int sleep_relative(clockid_t clock, const timespec* request, timespec* rest) {
    if (request == nullptr) return next_clock_nanosleep(clock, 0, request, rest);
    timespec left = *request;
    for (;;) {
        uint32_t held = signals_held.load(std::memory_order_relaxed);
        uint32_t handled = handlers_run.load(std::memory_order_relaxed);
        int error = next_clock_nanosleep(clock, 0, &left, &left);
        bool ours = signals_held.load(std::memory_order_relaxed) != held &&
                    handlers_run.load(std::memory_order_relaxed) == handled;
        if (error == EINTR && ours) continue;
        if (error == EINTR && rest != nullptr) *rest = left;
        return error;
    }
}

int64_t monotonic() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * kSecond + now.tv_nsec;
}

// wait(nanoseconds left) until it answers something else than our own EINTR. `length` in nanoseconds.
template <class F>
int wait_through_stops(int64_t length, F wait) {
    if (bridge() == nullptr || bridge()->stop_count == nullptr) return wait(length);
    int64_t end = monotonic() + length;
    int64_t left = length;
    for (;;) {
        uint32_t restarts = bridge()->restarted;
        uint32_t stops = *bridge()->stop_count;
        uint32_t handled = handlers_run.load(std::memory_order_relaxed);
        uint32_t held = signals_held.load(std::memory_order_relaxed);
        int result = wait(left);
        if (result != -1 || errno != EINTR) return result;
        bool stopped = bridge()->restarted != restarts || *bridge()->stop_count != stops ||
                       signals_held.load(std::memory_order_relaxed) != held;
        if (!stopped || handlers_run.load(std::memory_order_relaxed) != handled) return result;
        left = end - monotonic();
        if (left < 0) left = 0;
        if (left > length) left = length;  // another machine's clock
    }
}

}  // namespace
}  // namespace fermata::front::posix

using namespace fermata::front::posix;

FERMATA_INTERPOSE int nanosleep(const timespec* request, timespec* rest) {
    int error = sleep_relative(CLOCK_REALTIME, request, rest);
    if (error == 0) return 0;
    errno = error;
    return -1;
}
FERMATA_INTERPOSE int clock_nanosleep(clockid_t clock, int flags, const timespec* request, timespec* rest) {
    if ((flags & TIMER_ABSTIME) != 0) return next_clock_nanosleep(clock, flags, request, rest);
    return sleep_relative(clock, request, rest);
}
FERMATA_INTERPOSE int usleep(useconds_t microseconds) {
    timespec time = {microseconds / 1000000, static_cast<long>(microseconds % 1000000) * 1000};
    return nanosleep(&time, nullptr);
}
FERMATA_INTERPOSE int thrd_sleep(const timespec* request, timespec* rest) {
    int error = sleep_relative(CLOCK_REALTIME, request, rest);
    return error == 0 ? 0 : error == EINTR ? -1 : -2;
}

FERMATA_INTERPOSE int poll(pollfd* fds, nfds_t count, int timeout) {
    if (timeout <= 0) return next_poll(fds, count, timeout);
    // libc's ppoll hands the kernel a variable of its own, where the kernel leaves the rest.
    timespec time = {timeout / 1000, timeout % 1000 * 1000000L};
    return ppoll(fds, count, &time, nullptr);
}
FERMATA_INTERPOSE int __poll_chk(pollfd* fds, nfds_t count, int timeout, size_t) {
    return poll(fds, count, timeout);
}

FERMATA_INTERPOSE int epoll_pwait(int epoll, epoll_event* events, int room, int timeout,
                                  const sigset_t* mask) {
    if (timeout <= 0) return next_epoll_pwait(epoll, events, room, timeout, mask);
    return wait_through_stops(timeout * int64_t{1000000}, [&](int64_t left) {
        return next_epoll_pwait(epoll, events, room, static_cast<int>((left + 999999) / 1000000), mask);
    });
}
FERMATA_INTERPOSE int epoll_wait(int epoll, epoll_event* events, int room, int timeout) {
    return epoll_pwait(epoll, events, room, timeout, nullptr);
}

FERMATA_INTERPOSE int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
    sigset_t without = *set;
    sigdelset(&without, fermata::split::threads::kStopSignal);
    auto wait = [&](int64_t left) {
        timespec time = {left / kSecond, left % kSecond};
        return next_sigtimedwait(&without, info, &time);
    };
    int number = timeout == nullptr ? next_sigtimedwait(&without, info, timeout)
                                    : wait_through_stops(timeout->tv_sec * kSecond + timeout->tv_nsec, wait);
    if (number > 0) show_sender(number, info);
    return number;
}
FERMATA_INTERPOSE int semtimedop(int set, sembuf* operations, size_t count,
                                 const timespec* timeout) noexcept {
    if (timeout == nullptr) return next_semtimedop(set, operations, count, timeout);
    return wait_through_stops(timeout->tv_sec * kSecond + timeout->tv_nsec, [&](int64_t left) {
        timespec time = {left / kSecond, left % kSecond};
        return next_semtimedop(set, operations, count, &time);
    });
}
