#include "split/threads/interrupted.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "split/threads/bridge_text.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"

namespace fermata::split::threads {
namespace {

// Written by the agent, read by the handler; `sequence` is odd while it is written.
struct Sample {
    std::atomic<uint32_t> sequence{0};
    long number = -1;
    uint64_t argument[6] = {};
    uint64_t stack = 0;
    uint64_t instruction = 0;
};
Sample g_sample[kMaxThreads];

constexpr int kArgumentRegister[6] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};

FERMATA_NO_TLS bool after_syscall_instruction(uint64_t rip) {
    const auto* code = reinterpret_cast<const unsigned char*>(rip);
    return code[-2] == 0x0f && code[-1] == 0x05;
}

FERMATA_NO_TLS long number_from_sample(const Sample& sample, const greg_t* registers) {
    uint32_t before = sample.sequence.load(std::memory_order_acquire);
    if ((before & 1) != 0) return -1;
    if (sample.number < 0 || sample.instruction != static_cast<uint64_t>(registers[REG_RIP]) ||
        sample.stack != static_cast<uint64_t>(registers[REG_RSP]))
        return -1;
    for (int i = 0; i < 6; ++i)
        if (sample.argument[i] != static_cast<uint64_t>(registers[kArgumentRegister[i]])) return -1;
    long number = sample.number;
    return sample.sequence.load(std::memory_order_acquire) == before ? number : -1;
}

FERMATA_NO_TLS bool stands_before(const unsigned char* end, const unsigned char* bytes, int size) {
    for (int i = 0; i < size; ++i)
        if (end[i - size] != bytes[i]) return false;
    return true;
}

// Cancellation points since glibc 2.41 have the number on the stack (sysdeps/unix/sysv/linux/x86_64,
// syscall_cancel.S; nptl/cancellation.c, as compiled for Debian 13).
FERMATA_NO_TLS long number_from_stack(const unsigned char* code, uint64_t stack) {
    const auto word_at = [stack](int offset) __attribute__((always_inline)) {
        return *reinterpret_cast<const uint64_t*>(stack + static_cast<uint64_t>(offset));
    };
    // mov N(%rsp),%rax; syscall: one thread alone, or cancellation is disabled.
    constexpr unsigned char kFromStack[] = {0x48, 0x8b, 0x44, 0x24};
    if (stands_before(code - 3, kFromStack, sizeof kFromStack)) return static_cast<long>(word_at(code[-3]));
    // mov 16(%rsp),%r9; mov %r11,8(%rsp); syscall, in __syscall_cancel_arch.
    constexpr unsigned char kArch[] = {0x4c, 0x8b, 0x4c, 0x24, 0x10, 0x4c, 0x89, 0x5c, 0x24, 0x08};
    if (!stands_before(code - 2, kArch, sizeof kArch)) return -1;
    // Its caller: mov N(%rsp),%rsi, two registers, mov %r11,%rdi; call.
    constexpr int kCall = 5;
    constexpr unsigned char kNumber[] = {0x48, 0x8b, 0x74, 0x24},
                            kOthers[] = {0x49, 0x89, 0xd0, 0x48, 0x89, 0xfa, 0x4c, 0x89, 0xdf, 0xe8};
    const auto* call = reinterpret_cast<const unsigned char*>(word_at(0)) - kCall;
    const unsigned char* others = call + 1 - sizeof kOthers;
    if (!stands_before(call + 1, kOthers, sizeof kOthers) ||
        !stands_before(others - 1, kNumber, sizeof kNumber))
        return -1;
    return static_cast<long>(word_at(8 + others[-1]));
}

FERMATA_NO_TLS long number_from_code(const greg_t* registers) {
    const auto* code = reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
    long number = 0;
    if (code[-7] == 0xb8)  // mov $imm32, %eax
        for (int i = 0; i < 4; ++i) number |= static_cast<long>(code[-6 + i]) << (8 * i);
    else
        number = number_from_stack(code, static_cast<uint64_t>(registers[REG_RSP]));
    return number >= 0 && number < 1024 ? number : -1;
}

}  // namespace

int sample_system_call(int index, int tid) noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    char text[256];
    long size = -1;
    int fd = static_cast<int>(raw::call(SYS_openat, AT_FDCWD, raw::word(path), O_RDONLY | O_CLOEXEC));
    if (fd >= 0) {
        size = raw::call(SYS_read, fd, raw::word(text), sizeof text - 1);
        raw::call(SYS_close, fd);
    }
    Sample& sample = g_sample[index];
    sample.sequence.fetch_add(1, std::memory_order_acq_rel);
    sample.number = -1;
    if (size > 0) {
        text[size] = 0;
        // "running", "-1 sp pc", or "number a1 a2 a3 a4 a5 a6 sp pc"
        char* at = text;
        char* end = nullptr;
        long number = std::strtol(at, &end, 10);
        if (end != at && number >= 0) {
            uint64_t value[8] = {};
            int found = 0;
            for (; found < 8; ++found) {
                at = end;
                value[found] = std::strtoull(at, &end, 16);
                if (end == at) break;
            }
            if (found == 8) {
                std::memcpy(sample.argument, value, sizeof sample.argument);
                sample.stack = value[6];
                sample.instruction = value[7];
                sample.number = number;
            }
        }
    }
    int number = static_cast<int>(sample.number);
    sample.sequence.fetch_add(1, std::memory_order_acq_rel);
    return number;
}

bool awaits_stop_signal(int index) noexcept {
    const Sample& sample = g_sample[index];
    raw::SignalSet set = 0;
    iovec to = {&set, sizeof set}, from = {reinterpret_cast<void*>(sample.argument[0]), sizeof set};
    return sample.number == SYS_rt_sigtimedwait &&
           raw::call(SYS_process_vm_readv, raw::getpid(), raw::word(&to), 1, raw::word(&from), 1) ==
               sizeof set &&
           (set & raw::signal_bit(kStopSignal)) != 0;
}

FERMATA_NO_TLS bool may_issue_again(long number, const greg_t* registers) noexcept {
    auto argument = [&](int i) __attribute__((always_inline)) { return registers[kArgumentRegister[i]]; };
    switch (number) {
        // Nothing to wait for but a signal or an event.
        case SYS_pause:
        case SYS_rt_sigsuspend:
        case SYS_msgsnd:
        case SYS_msgrcv:
        case SYS_semop:
            return true;
        // The kernel writes the rest back: into `rem`, or over the timeout itself.
        case SYS_nanosleep:
            return argument(1) != 0 && argument(1) == argument(0);
        case SYS_clock_nanosleep:
            return (argument(1) & TIMER_ABSTIME) != 0 || (argument(3) != 0 && argument(3) == argument(2));
        case SYS_select:
        case SYS_pselect6:
        case SYS_ppoll:
            return true;
        // Relative timeout in a register or not written back: only without one.
        case SYS_poll:
            return static_cast<int>(argument(2)) < 0;
        case SYS_epoll_wait:
        case SYS_epoll_pwait:
            return static_cast<int>(argument(3)) < 0;
        case SYS_epoll_pwait2:
        case SYS_semtimedop:
            return argument(3) == 0;
        case SYS_rt_sigtimedwait:
            return argument(2) == 0;
        case SYS_io_getevents:
        case SYS_io_pgetevents:
            return argument(4) == 0;
        case SYS_futex: {
            long command = argument(1) & FUTEX_CMD_MASK;
            return command == FUTEX_WAIT_BITSET || (command == FUTEX_WAIT && argument(3) == 0);
        }
        case 449:  // futex_waitv: absolute
            return true;
        default:
            return false;
    }
}

FERMATA_NO_TLS int rewind_interrupted(int index, ucontext_t* frame) noexcept {
    greg_t* registers = frame->uc_mcontext.gregs;
    if (registers[REG_RAX] != -EINTR) return -1;
    auto rip = static_cast<uint64_t>(registers[REG_RIP]);
    if (!after_syscall_instruction(rip)) return -1;
    long number = number_from_sample(g_sample[index], registers);
    if (number < 0) number = number_from_code(registers);
    if (number < 0 || !may_issue_again(number, registers)) return -1;
    registers[REG_RAX] = number;
    registers[REG_RIP] -= 2;
    return static_cast<int>(number);
}

FERMATA_NO_TLS void undo_rewind_if_signalled(int number, ucontext_t* frame) noexcept {
    if (number < 0) return;
    // Waits with a mask of their own take it in atomically: the signal stays pending until the call is
    // issued.
    if (number == SYS_rt_sigsuspend || number == SYS_ppoll || number == SYS_pselect6 ||
        number == SYS_epoll_pwait || number == SYS_epoll_pwait2 || number == SYS_rt_sigtimedwait)
        return;
    raw::SignalSet pending = 0;
    raw::call(SYS_rt_sigpending, raw::word(&pending), 8);
    raw::SignalSet blocked = 0;
    __builtin_memcpy(&blocked, &frame->uc_sigmask, sizeof blocked);
    pending &= ~blocked & ~raw::signal_bit(kStopSignal);
    if (pending == 0) return;
    frame->uc_mcontext.gregs[REG_RAX] = -EINTR;
    frame->uc_mcontext.gregs[REG_RIP] += 2;
}

}  // namespace fermata::split::threads
