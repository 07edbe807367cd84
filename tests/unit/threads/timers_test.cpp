// Timers that go off while the state is captured: each is in the state, or its signal is.
#include <signal.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "process_fixture.h"
#include "split/process/parts.h"

namespace {

using Clock = std::chrono::steady_clock;

// Signals that wait, by their numbers, and the rest of a captured state.
struct State {
    Json all;
    explicit State(const Captured& captured) : all(parse_state(captured.state)) {}
    int waiting(int number) const {
        int count = 0;
        for (const Json& one : all.at("signals").at("waiting")) {
            siginfo_t info = {};
            std::memcpy(&info, one.get_binary().data(), std::min(one.get_binary().size(), sizeof info));
            count += info.si_signo == number;
        }
        return count;
    }
    bool real_interval_is_set() const {
        const Json& real = all.at("timers").at("intervals").at(0);
        return real.at(0) != 0 || real.at(1) != 0;
    }
    bool posix_timer_is_set() const {
        const Json& left = all.at("timers").at("posix").at(0).at("left");
        return left.at(0) != 0 || left.at(1) != 0;
    }
    const Json& timerfd() const {
        for (const Json& one : all.at("descriptors").at("descriptions"))
            if (one.at("kind") == "timerfd") return one;
        CHECK(false);
    }
};

void block_all() {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
}

void discard(int number) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    static const timespec kNow = {0, 0};
    while (sigtimedwait(&one, nullptr, &kNow) == number) {
    }
}

// Times spread evenly over what one capture takes, and a bit more.
std::vector<long> moments_ns() {
    const auto begin = Clock::now();
    for (int i = 0; i < 10; ++i) capture({});
    const long one = std::chrono::nanoseconds(Clock::now() - begin).count() / 10;
    std::vector<long> all;
    for (long i = 1; i <= 400; ++i) all.push_back(one * i / 350 + 1000);
    return all;
}

}  // namespace

TEST_F(Process, AnIntervalTimerGoesOnWheneverItGoesOff) {
    child([&] {
        block_all();
        itimerval often = {{0, 200}, {0, 200}};
        setitimer(ITIMER_REAL, &often, nullptr);
        for (int i = 0; i < 400; ++i) CHECK(State(capture({})).real_interval_is_set());
    });
}

TEST_F(Process, AnAlarmIsToComeOrWaits) {
    child([&] {
        block_all();
        for (long moment : moments_ns()) {
            itimerval once = {{0, 0}, {0, moment / 1000}};
            setitimer(ITIMER_REAL, &once, nullptr);
            const State state(capture({}));
            CHECK(state.real_interval_is_set() + state.waiting(SIGALRM) == 1);
            once = {};
            setitimer(ITIMER_REAL, &once, nullptr);
            discard(SIGALRM);
        }
    });
}

TEST_F(Process, ATimerThatGoesOffOnceIsToComeOrWaits) {
    child([&] {
        block_all();
        sigevent event = {};
        event.sigev_notify = SIGEV_SIGNAL;
        event.sigev_signo = SIGRTMIN + 3;
        timer_t timer;
        CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
        for (long moment : moments_ns()) {
            itimerspec once = {{0, 0}, {0, moment}};
            CHECK(timer_settime(timer, 0, &once, nullptr) == 0);
            const State state(capture({}));
            CHECK(state.posix_timer_is_set() + state.waiting(SIGRTMIN + 3) == 1);
            once = {};
            timer_settime(timer, 0, &once, nullptr);
            discard(SIGRTMIN + 3);
        }
    });
}

TEST_F(Process, ATimerfdThatGoesOffOnceIsToComeOrHasTicked) {
    child([&] {
        int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
        for (long moment : moments_ns()) {
            itimerspec once = {{0, 0}, {0, moment}};
            CHECK(timerfd_settime(timer, 0, &once, nullptr) == 0);
            const State state(capture({}));
            const Json& saved = state.timerfd();
            const Json& left = saved.at("left");
            CHECK((left.at(0) != 0 || left.at(1) != 0) + (saved.at("ticks") != 0) == 1);
        }
    });
}
