#include "front/logged/escape.h"

#include <cstddef>

// Saves what a function has to keep for its caller, and where it returns to. The layout of EscapePoint is the
// order below.
asm(R"(
    .text
    .globl fermata_mark_escape
    .hidden fermata_mark_escape
    .type fermata_mark_escape, @function
fermata_mark_escape:
    endbr64
    mov %rbx, 0(%rdi)
    mov %rbp, 8(%rdi)
    mov %r12, 16(%rdi)
    mov %r13, 24(%rdi)
    mov %r14, 32(%rdi)
    mov %r15, 40(%rdi)
    lea 8(%rsp), %rax
    mov %rax, 48(%rdi)
    mov (%rsp), %rax
    mov %rax, 56(%rdi)
    xor %eax, %eax
    ret
    .size fermata_mark_escape, . - fermata_mark_escape
)");

namespace fermata::front::logged {

static_assert(offsetof(split::EscapePoint, rsp) == 48 && offsetof(split::EscapePoint, rip) == 56);

}  // namespace fermata::front::logged
