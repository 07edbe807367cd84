// Starts a dynamic program in the window, as the kernel's execve would, but in this process.
#pragma once

#include <string>
#include <vector>

#include "base/page.h"
#include "base/range.h"
#include "split/bridge.h"
#include "split/loader/program.h"

namespace fermata::split {

struct ProgramSpec {
    std::string program;                 // as the user wrote it; PATH is searched when it has no slash
    std::vector<std::string> arguments;  // without argv[0]
    std::string argv0;                   // "" = `program` as written
    std::string front_dir;               // put first on --library-path; "" = none
    // Preloaded before the ABI fronts that the program needs, e.g. {front_dir + "/libfermata-front.so"}.
    std::vector<std::string> preload;
    bool preload_abi = true;             // also preload the fronts found by inspect_program (beats DT_RPATH)
    char* const* environment = nullptr;  // nullptr = environ; FERMATA_* is left out in any case
    const Bridge* bridge = nullptr;      // handed over as auxv entry kAuxvBridge; nullptr = no such entry
    Range area = {};  // where to put ld.so and the stack; empty = the kernel's choice (the window)
};

struct StartedProgram {
    ProgramCheck check;
    uint64_t entry = 0;          // ld.so's entry point
    uint64_t stack_pointer = 0;  // argc lies here
    Range stack;                 // without the guard page below
    Range loader;                // ld.so
    uint64_t vdso = 0;
    const char *command_line = nullptr, *command_line_end = nullptr;  // on its stack
};

// Maps ld.so, the stack and the vDSO; nothing runs yet. Throws fermata::Error with one line for the user.
StartedProgram load_program(const ProgramSpec& spec);

// Runs it on the calling thread, which must be the process's main thread, with the thread's rseq registration
// and the lower half's signal handlers (1..31) removed. The lower half's thread pointer must have been noted
// before.
[[noreturn]] void enter_program(const StartedProgram& program);

// Part of enter_program that a child also needs: gives signals 1..31 the actions that exec leaves (handlers
// of one half would run with the other's thread pointer), and no alternate stack.
void reset_signals();

// Part of enter_program that a restart also needs: gives up the lower libc's rseq registration of the calling
// thread, so that the upper half's may be made (a thread can have one). 0 or -errno; 0 when there was none.
int release_rseq() noexcept;

}  // namespace fermata::split
