// Threads that block the stop signal for a moment only, and are opened in it.
#include "split/threads/masked.h"

#include <gtest/gtest.h>

#include <atomic>
#include <ios>
#include <thread>

#include "agent_fixture.h"
#include "split/threads/not_stopped.h"

namespace fermata::split::threads::testing {
namespace {

raw::SignalSet blocked_by(int tid) { return status_mask(task_file(tid, "status"), "SigBlk:"); }

void spin_us(uint64_t us) {
    for (const uint64_t end = now_ns() + us * 1000; now_ns() < end;) {
    }
}

// As a section of ours does: everything is blocked, and the handler may meet it where it captures nobody.
void block_for_a_moment(ThreadRecord* record) {
    const raw::SignalSet mask = raw::set_signal_mask(raw::kAllSignals);
    for (const uint64_t end = now_ns() + 60'000'000; now_ns() < end;) {
        record->in_mpi = 1;
        spin_us(20);
        record->in_mpi = 0;
        spin_us(20);
    }
    raw::set_signal_mask(mask);
}

TEST(Masked, AThreadThatWasOpenedAndNotCapturedGoesOnWithItsMask) {
    Agent::get();
    std::atomic<ThreadRecord*> record{nullptr};
    std::atomic<bool> blocks{false}, done{false};
    const raw::SignalSet all = raw::kAllSignals & ~(raw::signal_bit(SIGKILL) | raw::signal_bit(SIGSTOP));
    std::thread upper([&] {
        write_gs(0);
        record = attach(read_fs());
        while (!done)
            if (blocks)
                block_for_a_moment(record), blocks = false;
            else
                sleep_ms(1);
    });
    while (record == nullptr) sleep_ms(1);
    const raw::SignalSet before = blocked_by(record.load()->tid);
    for (int round = 0; round < 8; ++round) {
        blocks = true;
        sleep_ms(5);
        raw::SignalSet captured = 0;
        EXPECT_TRUE(stop_and_resume([&] { captured = record.load()->signal_mask; }).stopped);
        EXPECT_TRUE(captured == before || captured == all) << std::hex << captured;
        while (blocks) sleep_ms(1);
        EXPECT_EQ(blocked_by(record.load()->tid), before) << std::hex << before;
    }
    done = true;
    upper.join();
}

std::atomic<bool> g_section;

TEST(Masked, NobodyIsOpenedWithinASection) {
    Agent::get();
    never_open_while([] { return g_section.load(); });
    std::atomic<bool> begun{false}, done{false};
    std::thread upper([&] {
        write_gs(0);
        raw::set_signal_mask(raw::kAllSignals);
        g_section = true;
        begun = true;
        spin_us(600'000);
        g_section = false;
        while (!done) spin_us(100);
    });
    while (!begun) sleep_ms(1);
    bool within = true;
    EXPECT_TRUE(stop_and_resume([&] { within = g_section; }).stopped);
    EXPECT_FALSE(within);
    done = true;
    upper.join();
    never_open_while(nullptr);
}

}  // namespace
}  // namespace fermata::split::threads::testing
