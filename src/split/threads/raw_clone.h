// Makes a thread or process without a libc: usable with any thread pointer.
#pragma once

#include <sys/syscall.h>

#include <cstdint>

namespace fermata::split::raw {

// clone(): the new one begins with entry(argument) on `stack`, whose end that is, and never comes back from
// there. `tls` counts with CLONE_SETTLS. Returns its number to the caller, or -errno.
template <class Argument>
__attribute__((always_inline)) inline long clone_into(unsigned long flags, uint64_t stack, uint64_t tls,
                                                      void (*entry)(Argument*), Argument* argument) {
    long result;
    register long r10 asm("r10") = 0;
    register uint64_t r8 asm("r8") = tls;
    register Argument* r12 asm("r12") = argument;
    register auto r13 asm("r13") = entry;
    asm volatile(
        "syscall\n\t"
        "test %%rax, %%rax\n\t"
        "jnz 1f\n\t"
        "xor %%ebp, %%ebp\n\t"
        "mov %%r12, %%rdi\n\t"
        "call *%%r13\n\t"
        "ud2\n"
        "1:"
        : "=a"(result)
        : "0"(SYS_clone), "D"(flags), "S"(stack), "d"(0), "r"(r10), "r"(r8), "r"(r12), "r"(r13)
        : "rcx", "r11", "memory");
    return result;
}

}  // namespace fermata::split::raw
