// The upper half's vDSO (vdso.h). Position independent, no relocations: ld.so applies none to a vDSO.
// Each function jumps through its slot of the table, or makes the system call while the slot is empty.

        .macro  function name, slot, number
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        endbr64
        movq    fermata_vdso_table + 8 * \slot(%rip), %rax
        testq   %rax, %rax
        jz      1f
        jmpq    *%rax
1:      movl    $\number, %eax
        syscall
        ret
        .cfi_endproc
        .size   \name, . - \name
        .endm

        // A clock of the CPU, or none of the kernel's: clocks.c.
        .text
        .globl  __vdso_clock_gettime
        .type   __vdso_clock_gettime, @function
        .p2align 4
__vdso_clock_gettime:
        .cfi_startproc
        endbr64
        leal    -2(%rdi), %eax
        cmpl    $1, %eax
        jbe     1f
        cmpl    $16, %edi
        jae     1f
        movq    fermata_vdso_table(%rip), %rax
        testq   %rax, %rax
        jz      2f
        jmpq    *%rax
1:      jmp     fermata_cpu_clock
2:      movl    $228, %eax
        syscall
        ret
        .cfi_endproc
        .size   __vdso_clock_gettime, . - __vdso_clock_gettime

        function __vdso_gettimeofday, 1, 96
        function __vdso_time, 2, 201
        function __vdso_clock_getres, 3, 229
        function __vdso_getcpu, 4, 309

        .macro  weak_name name, target
        .weak   \name
        .set    \name, \target
        .endm
        weak_name clock_gettime, __vdso_clock_gettime
        weak_name gettimeofday, __vdso_gettimeofday
        weak_name time, __vdso_time
        weak_name clock_getres, __vdso_clock_getres
        weak_name getcpu, __vdso_getcpu

        .data
        .globl  fermata_vdso_table
        .type   fermata_vdso_table, @object
        .p2align 12
fermata_vdso_table:
        .fill   4096, 1, 0
        .size   fermata_vdso_table, 4096

        // struct FermataCpuOffsets
        .globl  fermata_vdso_cpu
        .protected fermata_vdso_cpu
        .type   fermata_vdso_cpu, @object
        .p2align 12
fermata_vdso_cpu:
        .fill   20480, 1, 0
        .size   fermata_vdso_cpu, 20480

        .section .note.GNU-stack, "", @progbits
