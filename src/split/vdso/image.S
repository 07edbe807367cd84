// The upper half's vDSO (vdso.h). Position independent, no relocations: ld.so applies none to a vDSO.
// Each function jumps through its slot of the table, or makes the system call while the slot is empty.

// A thread may be stopped between two instructions and go on in another process: no register holds an address
// of the kernel's functions.

        .macro  function name, place, number
        .globl  \name
        .type   \name, @function
        .p2align 4
\name:
        .cfi_startproc
        endbr64
        cmpq    $0, fermata_vdso_table + 8 * \place(%rip)
        je      1f
        jmpq    *fermata_vdso_table + 8 * \place(%rip)
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
        cmpq    $0, fermata_vdso_table(%rip)
        je      2f
        jmpq    *fermata_vdso_table(%rip)
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
        // For who listens: the kernel's own.
        function fermata_vdso_kernels_clock, 8, 228
        function fermata_vdso_kernels_day, 9, 96

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
        // struct FermataVdsoTable
        .globl  fermata_vdso_table
        .protected fermata_vdso_table
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
