/* A function of which no unwind table tells: as hand-written assembler has it. */
__asm__(
    ".text\n"
    ".globl own_thread_pointer\n"
    ".type own_thread_pointer, @function\n"
    "own_thread_pointer:\n"
    "    mov %fs:0x10, %rax\n"
    "    ret\n"
    ".size own_thread_pointer, .-own_thread_pointer\n"
    ".section .note.GNU-stack,\"\",@progbits\n");
