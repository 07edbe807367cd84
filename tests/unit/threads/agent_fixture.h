// A process with an agent thread that serves donors and stops the others on request.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "split/gate.h"
#include "split/threads/donors.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"
#include "split/threads/restart.h"
#include "split/threads/stop.h"

namespace fermata::split::threads::testing {

inline uint64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000ull + static_cast<uint64_t>(now.tv_nsec);
}
inline void sleep_ms(int ms) {
    timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
    }
}

// The agent: a thread that runs what it is given, with the door bell in between.
class Agent {
  public:
    static Agent& get() {
        static Agent* agent = new Agent;  // lives as long as the process
        return *agent;
    }
    // Runs `work` on the agent thread and waits for it (the caller may be stopped meanwhile).
    void run(std::function<void()> work) {
        work_ = std::move(work);
        state_.store(1);
        poke_agent();
        while (state_.load() == 1) raw::futex_wait(&state_, 1);
    }

    // In a forked copy of this process, where nobody will finish the work.
    void abandon_work() { state_.store(0); }

  private:
    Agent() {
        set_split(false);
        EXPECT_EQ(unsupported_machine(), "");
        create_table();
        install_stop_handler();
        make_bell(100);
        pthread_t thread;
        pthread_create(
            &thread, nullptr,
            [](void* self) -> void* {
                static_cast<Agent*>(self)->loop();
                return nullptr;
            },
            this);
        while (!entered_.load()) sleep_ms(1);
    }
    void loop() {
        enter_agent();
        entered_.store(true);
        for (;;) {
            pollfd bell = {bell_fd(), POLLIN, 0};
            poll(&bell, 1, -1);
            answer_bell();
            serve_donor_requests();
            if (state_.load() == 1) {
                work_();
                state_.store(0);
                raw::futex_wake(&state_);
            }
        }
    }
    std::function<void()> work_;
    std::atomic<uint32_t> state_{0};
    std::atomic<bool> entered_{false};
};

// The number of the system call that a thread is blocked in, -1 = none.
inline long blocked_in(int tid) {
    char text[64] = {};
    std::FILE* file = std::fopen(("/proc/self/task/" + std::to_string(tid) + "/syscall").c_str(), "r");
    if (file == nullptr) return -1;
    bool read = std::fgets(text, sizeof text, file) != nullptr;
    std::fclose(file);
    return read && text[0] >= '0' && text[0] <= '9' ? std::atol(text) : -1;
}
inline void wait_until_blocked(int tid, long number) {
    while (blocked_in(tid) != number) sleep_ms(1);
}

// Stops all, runs `between` on the agent, resumes.
inline StopReport stop_and_resume(std::function<void()> between = {}, int limit_ms = 3000) {
    StopReport report;
    Agent::get().run([&] {
        report = stop_all(now_ns() + static_cast<uint64_t>(limit_ms) * 1000000);
        if (report.stopped && between) between();
        resume_all();
    });
    return report;
}

}  // namespace fermata::split::threads::testing
