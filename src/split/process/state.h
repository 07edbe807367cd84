// State of a process besides memory and threads: descriptors, working directory, umask, signal actions,
// timers, limits, pending signals.
//
// capture() is called by the agent while every upper thread is stopped; restore() by the lower main thread at
// restart, after restore_threads. The state is one CBOR value: self-describing, so an older image stays
// readable; unknown versions are refused. State that cannot be held is a warning that names it and what the
// program will see instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "files/folder.h"
#include "split/process/children.h"

namespace fermata::split {
struct NotedFiles;
namespace ids {
struct Table;
}
}  // namespace fermata::split

namespace fermata::split::process {

struct Limits {
    int descriptors = 1 << 30;        // descriptors below this are the upper half's (lower_descriptor_base())
    const ids::Table* ids = nullptr;  // which processes the program knows; null: by the kernel's numbers
};

// Lower main, first start only, before the upper half runs: remembers what was inherited from the launcher
// (0, 1, 2, limits, personality), so that capture can tell what the application changed.
void note_inherited();

// Files that the program writes (files.h).
struct Keep {
    files::Folder generation;  // for copies; none: nothing is kept
    bool all = true;           // false: only the sizes of those that are open for appending
    const NotedFiles* noted = nullptr;
};

// Copies of files in the directory of a generation, written and not yet on storage.
class Copies {
  public:
    Copies() = default;
    Copies(files::Folder folder, std::vector<std::string> names)
        : folder_(std::move(folder)), names_(std::move(names)) {}
    Copies(Copies&&) = default;
    Copies& operator=(Copies&&) = default;  // only onto empty ones
    // Unless sync() has been there, no later generation shares them.
    ~Copies();
    // The generation is complete with them only. Throws fermata::Error.
    void sync();

  private:
    files::Folder folder_;
    std::vector<std::string> names_;
};

struct Captured {
    std::string state;  // CBOR
    Copies copies;
    std::vector<std::string> warnings;  // one line each
};
// Throws fermata::Error when the storage fails.
Captured capture(const Limits& limits, const Keep& keep = {},
                 const std::vector<Child>& children_now = children());

// Files as they were, before anything of the program is back: by the rank that has them in its care.
struct PutBack {
    std::string error;  // empty, or one line: what, where, what to do
    std::vector<std::string> warnings;
    int files = 0;  // put back, cut or moved aside
};
// `generation` and `name`: those of the image. `all`: else only what is open for appending is cut.
PutBack put_files_back(std::string_view state, const files::Folder& generation, const std::string& name,
                       bool all);

// Where the content of files that the program only reads was kept, and whether those must hold it still.
struct Reading {
    files::Folder generation;  // none: nothing was kept
    bool must_be_same = true;
};

struct Restored {
    std::string error;                  // empty = all is back; else one line: what, where, what to do
    std::vector<std::string> warnings;  //
};
// Descriptors, directory, umask, limits, signal actions, pending signals. Blocks all signals in the calling
// thread.
Restored restore(std::string_view state, const Limits& limits, const Reading& reading = {});
// Timers, armed with the time that was left. Call right before resume_all, after restore_threads.
Restored restore_timers(std::string_view state);

// Shared memory and other mappings that the image writer wants to treat together with a descriptor: not here,
// see split/memory.

}  // namespace fermata::split::process
