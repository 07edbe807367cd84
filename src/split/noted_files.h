// Paths of files that the program has written to or named anew, so that a checkpoint knows them when they are
// closed. The front fills the table, in upper memory: it is part of every image. The agent reads it while all
// threads stand.
#pragma once

#include <cstdint>

namespace fermata::split {

// Bits of NotedFile::how.
enum Noted : uint32_t {
    kNotedTried = 1,     // a call was made; nobody has heard yet how it ended
    kNotedAppended = 2,  // opened with O_APPEND
    kNotedWritten = 4,   // opened for writing otherwise, truncated, removed, or a name that another file got
    kNotedLastAppended = 8,  // the last open was with O_APPEND
};

struct NotedFile {
    uint64_t hash;
    uint32_t path;  // in NotedFiles::text, ends in 0
    volatile uint32_t how;
};

// Untouched parts cost no memory.
struct NotedFiles {
    static constexpr uint32_t kMost = 16384, kSlots = 4 * kMost, kText = 4 << 20;
    volatile uint32_t count;
    volatile uint32_t missed;   // did not fit
    volatile uint32_t changes;  // odd while entries move
    uint32_t crowded;           // 1: most of the files are there, and stay
    uint32_t used;              // of `text`
    NotedFile file[kMost];
    volatile uint32_t slot[kSlots];  // by hash: 1 + index in `file`, 0 = free
    char text[kText];
};

inline uint64_t noted_hash(const char* path) noexcept {
    uint64_t hash = 1469598103934665603u;
    for (; *path != 0; ++path) hash = (hash ^ static_cast<unsigned char>(*path)) * 1099511628211u;
    return hash;
}

}  // namespace fermata::split
