// Threads that block the stop signal for a moment only, and are opened in it.
#include "split/threads/masked.h"

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <ios>
#include <thread>

#include "agent_fixture.h"
#include "split/threads/not_stopped.h"

namespace fermata::split::threads::testing {
namespace {

raw::SignalSet blocked_by(int tid) { return status_mask(task_file(tid, "status"), "SigBlk:"); }

// In a section, or in the stop handler.
constexpr raw::SignalSet kAll = raw::kAllSignals & ~(raw::signal_bit(SIGKILL) | raw::signal_bit(SIGSTOP));

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
        EXPECT_TRUE(captured == before || captured == kAll) << std::hex << captured;
        while (blocks) sleep_ms(1);
        EXPECT_EQ(blocked_by(record.load()->tid), before) << std::hex << before;
    }
    done = true;
    upper.join();
}

// Leaves the stop point again and again, with all bits set where that would keep a mask.
void pass_stop_points(const std::atomic<bool>& done) {
    while (!done)
        asm volatile(
            "movq $-1, -152(%%rsp)\n\t"
            "sub $128, %%rsp\n\t"
            "call fermata_stop_point\n\t"
            "add $128, %%rsp"
            :
            :
            : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

// Steps the thread to where it is about to leave the stop point, says so, and lets go after a while. Ends
// the process.
[[noreturn]] void hold_before_return(int tid, int say) {
    constexpr unsigned char kReturn = 0xc3;
    const auto begin = reinterpret_cast<uint64_t>(&fermata_stop_point);
    constexpr uint64_t kLongest = 128;  // bytes of it
    char there = 0;
    if (ptrace(PTRACE_SEIZE, tid, 0, 0) == 0 && ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0)
        for (int steps = 0; there == 0 && steps < 100'000; ++steps) {
            user_regs_struct registers;
            if (waitpid(tid, nullptr, __WALL) != tid || ptrace(PTRACE_GETREGS, tid, 0, &registers) != 0)
                break;
            there = registers.rip >= begin && registers.rip < begin + kLongest &&
                    *reinterpret_cast<const unsigned char*>(registers.rip) == kReturn;
            if (there == 0) ptrace(PTRACE_SINGLESTEP, tid, 0, 0);
        }
    if (write(say, &there, 1) == 1) sleep_ms(100);
    _exit(0);  // and the kernel lets go
}

TEST(Masked, WhoLeavesTheStopPointHasItsMask) {
    Agent::get();
    std::atomic<ThreadRecord*> record{nullptr};
    std::atomic<bool> done{false};
    std::thread upper([&] {
        write_gs(0);
        record = attach(read_fs());
        pass_stop_points(done);
    });
    while (record == nullptr) sleep_ms(1);
    const int tid = record.load()->tid;
    const raw::SignalSet before = blocked_by(tid);
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t debugger = fork();
    if (debugger == 0) hold_before_return(tid, ready[1]);
    char there = 0;
    ASSERT_EQ(read(ready[0], &there, 1), 1);
    EXPECT_EQ(there, 1);
    raw::SignalSet captured = 0;
    EXPECT_TRUE(stop_and_resume([&] { captured = record.load()->signal_mask; }).stopped);
    EXPECT_EQ(captured, before) << std::hex << captured;
    done = true;
    upper.join();
    waitpid(debugger, nullptr, 0);
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
