// The built image as bytes of the lower half (FERMATA_VDSO_IMAGE: path given by CMake).
        .section .rodata
        .globl  fermata_vdso_bytes
        .hidden fermata_vdso_bytes
        .globl  fermata_vdso_bytes_end
        .hidden fermata_vdso_bytes_end
        .p2align 12
fermata_vdso_bytes:
        .incbin FERMATA_VDSO_IMAGE
fermata_vdso_bytes_end:
        .section .note.GNU-stack, "", @progbits
