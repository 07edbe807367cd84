// Signals that wait for one thread alone: noted with what they carry, or named where nobody can see that.
#include "split/threads/own_signals.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "agent_fixture.h"

namespace fermata::split::threads::testing {
namespace {

// A thread that blocks a signal, which then waits for it twice, with the values 1 and 2.
class OwnSignals : public ::testing::Test {
  protected:
    void SetUp() override {
        Agent::get();
        addressed_ = std::thread([this] {
            write_gs(0);
            prctl(PR_SET_NAME, "addressed");
            sigset_t mine;
            sigemptyset(&mine);
            sigaddset(&mine, kSignal);
            pthread_sigmask(SIG_BLOCK, &mine, nullptr);
            tid_ = gettid();
            while (!done_) sleep_ms(1);
        });
        while (tid_ == 0) sleep_ms(1);
        for (int value = 1; value <= 2; ++value)
            ASSERT_EQ(pthread_sigqueue(addressed_.native_handle(), kSignal, {.sival_int = value}), 0);
    }
    void TearDown() override {
        done_ = true;
        addressed_.join();
    }
    StopReport look() {
        return stop_and_resume([this] {
            before_look_();
            EXPECT_TRUE(describe_stopped_threads().empty());
            noted_ = note_own_signals(warnings_);
            pending_ = table()->saved[find_record(tid_)->index].pending;
        });
    }

    const int kSignal = SIGRTMIN + 6;
    std::atomic<int> tid_{0};
    std::function<void()> before_look_ = [] {};
    std::vector<OwnSignal> noted_;
    std::vector<std::string> warnings_;
    raw::SignalSet pending_ = 0;

  private:
    std::atomic<bool> done_{false};
    std::thread addressed_;
};

TEST_F(OwnSignals, AreNotedWithWhatTheyCarry) {
    ASSERT_TRUE(look().stopped);
    EXPECT_TRUE(warnings_.empty());
    EXPECT_EQ(pending_, raw::signal_bit(kSignal));
    ASSERT_EQ(noted_.size(), 2u);
    for (int i = 0; i < 2; ++i) {
        const OwnSignal& one = noted_[static_cast<size_t>(i)];
        EXPECT_EQ(one.tid, tid_);
        EXPECT_EQ(one.info.si_signo, kSignal);
        EXPECT_EQ(one.info.si_value.sival_int, i + 1);
    }
}

TEST_F(OwnSignals, OfAThreadThatCannotBeTracedAreNamed) {
    int go[2], seized[2];
    ASSERT_TRUE(pipe(go) == 0 && pipe(seized) == 0);
    const pid_t debugger = fork();
    if (debugger == 0) {  // takes the thread when it has been stopped
        char traced = 0;
        if (read(go[0], &traced, 1) == 1) traced = ptrace(PTRACE_SEIZE, tid_.load(), 0, 0) == 0;
        _exit(write(seized[1], &traced, 1) == 1 ? pause() : 1);
    }
    char traced = 0;
    before_look_ = [&] { EXPECT_TRUE(write(go[1], "", 1) == 1 && read(seized[0], &traced, 1) == 1); };
    EXPECT_TRUE(look().stopped);
    EXPECT_EQ(traced, 1);
    EXPECT_EQ(pending_, raw::signal_bit(kSignal));
    EXPECT_TRUE(noted_.empty());
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find("thread addressed alone"), std::string::npos) << warnings_[0];
    kill(debugger, SIGKILL);
    waitpid(debugger, nullptr, 0);
}

}  // namespace
}  // namespace fermata::split::threads::testing
