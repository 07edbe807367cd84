// What belongs to a process besides memory and threads: descriptors, working directory, umask, signal
// actions, timers, limits, pending signals.
//
// capture() is called by the agent while every upper thread is stopped; restore() by the lower main thread at
// restart, after restore_threads. The state is one CBOR value: self-describing, so an older image stays
// readable; unknown versions are refused. What cannot be held is a warning that names it and what the program
// will see instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::split {
struct NotedFiles;
}

namespace fermata::split::process {

struct Limits {
    int descriptors = 1 << 30;  // descriptors below this are the upper half's (lower_descriptor_base())
};

// Lower main, first start only, before the upper half runs: remembers what was inherited from the launcher
// (0, 1, 2, limits, personality), so that capture can tell what the application changed.
void note_inherited();

// Files that the program writes (files.h).
struct Keep {
    std::string directory;  // of the generation, for copies; empty: nothing is kept
    bool all = true;        // false: only the sizes of those that are open for appending
    const NotedFiles* noted = nullptr;
};

struct Captured {
    std::string state;                  // CBOR
    std::vector<std::string> warnings;  // one line each
};
// Throws fermata::Error when the storage fails.
Captured capture(const Limits& limits, const Keep& keep = {});

// Files as they were, before anything of the program is back: by the rank that has them in its care.
struct PutBack {
    std::string error;  // empty, or one line: what, where, what to do
    std::vector<std::string> warnings;
    int files = 0;  // put back, cut or moved aside
};
// `directory` and `generation` (its name): of the image. `all`: else only what is open for appending is cut.
PutBack put_files_back(std::string_view state, const std::string& directory, const std::string& generation,
                       bool all);

struct Restored {
    std::string error;                  // empty = all is back; else one line: what, where, what to do
    std::vector<std::string> warnings;  //
};
// Descriptors, directory, umask, limits, signal actions, pending signals. Blocks all signals in the calling
// thread.
Restored restore(std::string_view state, const Limits& limits);
// Timers, armed with the time that was left. Call right before resume_all, after restore_threads.
Restored restore_timers(std::string_view state);

// Shared memory and other mappings that the image writer wants to treat together with a descriptor: not here,
// see split/memory.

}  // namespace fermata::split::process
