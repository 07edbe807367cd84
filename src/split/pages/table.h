// MemoryTable lists the upper half's mappings as an image has them (docs/formats/memory.md): where each lies,
// how it is made again, and which of its pages have content in the image.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/page.h"
#include "base/range.h"

namespace fermata::split {

// How a mapping is made again.
enum class MapKind : uint32_t {
    anonymous = 0,    // private memory, also private file mappings: content from the image
    shared_file = 1,  // MAP_SHARED of a file that has a name: opened again, content is the file's
    shared_memory =
        2,  // shared anonymous, memfd, SysV, deleted file: content from the image; `object` tells which
    shared_kept = 3,  // named file that this rank, or one that shares it, has mapped for writing, on tmpfs
                      // (made again when missing) or a disk of this node: content from the image
};

struct MapEntry {
    Range range;
    int32_t prot = 0;
    MapKind kind = MapKind::anonymous;
    uint32_t flags = 0;   // MAP_NORESERVE, MAP_GROWSDOWN, MAP_HUGETLB, MAP_LOCKED as they apply
    uint32_t advice = 0;  // bit set of Advice
    uint64_t offset = 0;  // in the file or object
    uint64_t object = 0;  // shared_memory: identity; mappings with the same one share memory again
    uint64_t object_size = 0;
    bool writable_file = false;  // shared_*: the file was open for writing (mprotect may ask for it later)
    bool kept_below = false;     // MADV_DONTFORK by the lower half: not in the table's bytes
    std::string name;            // path for shared_file/tmpfs; what it was, for people, otherwise
    std::vector<Range> runs;     // pages whose content is in the image, in address order
};

enum Advice : uint32_t {
    kDontDump = 1,
    kDontFork = 2,
    kWipeOnFork = 4,
    kHugePage = 8,
    kNoHugePage = 16,
    kMergeable = 32,
    kRandom = 64,
    kSequential = 128,
    kGuard = 256,  // all of it is guard pages (memory/guards.h)
};

struct MemoryTable {
    std::vector<MapEntry> maps;  // address order
    uint64_t vdso = 0;           // address of our vDSO image, 0 = none
    uint64_t break_word = 0;     // address of the upper libc's __curbrk, 0 = none (break_word.h)
    uint64_t data_size() const;  // sum of all runs
};

// The table as bytes (docs/formats/memory.md). decode throws fermata::Error on bytes it does not understand,
// encode on a table of which they would be made.
std::string encode(const MemoryTable& table);
MemoryTable decode(std::span<const char> bytes);

}  // namespace fermata::split
