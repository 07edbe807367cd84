// What the test programs and the little lower half below them share: handed over as auxv entry kAuxvBridge.
#pragma once

#include <cstdint>

struct MiniBridge {
    // Saves the caller at the point that `point` describes into `file`; returns 0. In the process that loads
    // the file, the same call returns 1. Switches to the lower half's thread pointer and back.
    int (*save)(struct MiniPoint* point, const char* file);
    // Gives the program a second lower half, in a child of the process that called; returns 1 there.
    int (*hop)(struct MiniPoint* point, const char* unused);
};

// Callee-saved registers, in upper memory.
struct MiniPoint {
    uint64_t rbx, rbp, r12, r13, r14, r15, rsp, rip, fs;
    MiniBridge** bridge;  // where the program keeps the pointer; rewritten in the loading process
};
