# fermata_leap(ranges, stack, entry): unmaps a list of ranges (begin and size, each eight bytes; size 0 ends the
# list) and starts what is at `entry` with this stack pointer. It is copied to memory that stays, and uses no
# other: what calls it is among the ranges.
    .text
    .globl fermata_leap
    .hidden fermata_leap
    .type fermata_leap, @function
fermata_leap:
    mov %rdi, %rbx
    mov %rsi, %rsp
    mov %rdx, %r12
1:  mov (%rbx), %rdi
    mov 8(%rbx), %rsi
    test %rsi, %rsi
    jz 2f
    mov $11, %eax               # SYS_munmap
    syscall
    add $16, %rbx
    jmp 1b
2:  mov %r12, %r11
    xor %eax, %eax
    xor %ebx, %ebx
    xor %ecx, %ecx
    xor %edx, %edx
    xor %esi, %esi
    xor %edi, %edi
    xor %ebp, %ebp
    xor %r8d, %r8d
    xor %r9d, %r9d
    xor %r10d, %r10d
    xor %r12d, %r12d
    xor %r13d, %r13d
    xor %r14d, %r14d
    xor %r15d, %r15d
    jmp *%r11
    .size fermata_leap, .-fermata_leap
    .globl fermata_leap_end
    .hidden fermata_leap_end
fermata_leap_end:
    .section .note.GNU-stack, "", @progbits
