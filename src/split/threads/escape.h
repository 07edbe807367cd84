// Threads that a stop has met in the library, at a call that they can be brought out of
// (ThreadRecord::escape).
#pragma once

#include <ucontext.h>

#include "split/bridge.h"
#include "split/threads/raw.h"

namespace fermata::split::threads {

// Values of SavedThread::escapes.
enum Escape : uint32_t {
    kNotInLibrary = 0,
    kInLibrary = 1,  // goes on there, if the process does; a new process brings it back
    kComesBack = 2,  // is brought back in this process, too: nobody answers its call any more
};

// The captured thread goes on where it called the library. No TLS.
FERMATA_NO_TLS inline void bring_back(ThreadRecord* record) {
    const EscapePoint& point = *record->escape;
    greg_t* registers = static_cast<ucontext_t*>(record->context)->uc_mcontext.gregs;
    registers[REG_RBX] = static_cast<greg_t>(point.rbx);
    registers[REG_RBP] = static_cast<greg_t>(point.rbp);
    registers[REG_R12] = static_cast<greg_t>(point.r12);
    registers[REG_R13] = static_cast<greg_t>(point.r13);
    registers[REG_R14] = static_cast<greg_t>(point.r14);
    registers[REG_R15] = static_cast<greg_t>(point.r15);
    registers[REG_RSP] = static_cast<greg_t>(point.rsp);
    registers[REG_RIP] = static_cast<greg_t>(point.rip);
    registers[REG_RAX] = 1;
    constexpr greg_t kDirection = 0x400;
    registers[REG_EFL] &= ~kDirection;
    record->escape = nullptr;
    record->half = Half::upper;
    record->mode = 0;
}

}  // namespace fermata::split::threads
