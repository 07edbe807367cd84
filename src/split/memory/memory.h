// This header saves and loads the upper half's memory.
//
// At a checkpoint, with the upper threads stopped (sample_memory_flags() before that shortens the stop):
//
//     MemoryTable table = collect_memory().table;  // reads /proc/self/smaps and pagemap; lower malloc
//     fork();                                      // optional; nothing below allocates
//     make_readable(table);                        // PROT_NONE pages with content
//     write(encode(table));
//     for (map : table.maps) for (run : map.runs) write(run.begin(), run.size());
//     restore_protection(table);                   // not needed in a forked child
//
// The image's data is the runs one after the other: run k starts at the sum of the sizes before it.
//
// At a restart, after partition(), without an upper half:
//
//     MemoryTable table = decode(bytes);
//     map_memory(table);                           // everything mapped and writable
//     for (every run) read its bytes to run.begin(); // in any order, in parallel if you like
//     finish_memory(table);                        // protections, advice, vDSO table
//
// load_memory(table, reader) does all of that. Everything comes back at the same addresses, with content,
// protection and advice; then the vDSO's table is refilled. The kernel's search for addresses continues in
// the window as before.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/page.h"
#include "base/range.h"
#include "split/shared/objects.h"

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
    kGuard = 256,  // all of it is guard pages (guards.h)
};

struct MemoryTable {
    std::vector<MapEntry> maps;  // address order
    uint64_t vdso = 0;           // address of our vDSO image, 0 = none
    uint64_t break_word = 0;     // address of the upper libc's __curbrk, 0 = none (break_word.h)
    uint64_t data_size() const;  // sum of all runs
};

// Reads the advice and other flags of all mappings, for the next collect_memory(). The kernel walks page
// tables for that (smaps: 0.1 s per GiB of 4 KiB pages on Linux 6.18), so do it while the program still runs;
// what changes until the threads stop is missed. Without it collect_memory() reads them itself. Throws
// fermata::Error.
void sample_memory_flags();
// Fills in the flags of these, as sampled, or read now.
void add_memory_flags(std::vector<Mapping>& maps);

class DirtyTracker;

struct CollectedMemory {
    MemoryTable table;
    std::string maps;                         // /proc/self/maps, of which the table was made
    std::set<std::string> executed;           // files of which something may be executed
    std::map<uint64_t, shared::Key> objects;  // what MapEntry::object stands for
    // With a tracker, of each mapping: what has not been written since it was asked about before.
    std::vector<std::vector<Range>> unchanged;

    // What a copy of this process would not hold as it is now: shared memory, and files that may be written
    // to. Files of which something is executed are not.
    bool not_in_a_copy(const MapEntry& map) const;
};

// Enumerates the upper half. `tracker`: from now on it knows of each private mapping what is written. Throws
// fermata::Error (also what check() says).
CollectedMemory collect_memory(DirtyTracker* tracker = nullptr);

void make_readable(const MemoryTable& table) noexcept;
void restore_protection(const MemoryTable& table) noexcept;

// Before and after a fork that is to copy all of the table: memory that the program keeps from its children
// (MADV_DONTFORK) or that they get empty (MADV_WIPEONFORK) is let through for the moment.
void let_fork_copy(const MemoryTable& table, bool copy) noexcept;

// The table as bytes (docs/formats/memory.md). decode throws fermata::Error on bytes it does not understand,
// encode on a table of which they would be made.
std::string encode(const MemoryTable& table);
MemoryTable decode(std::span<const char> bytes);

// Throws fermata::Error, naming the mapping, when something is in the way or a file is missing.
void map_memory(const MemoryTable& table);
void finish_memory(const MemoryTable& table);

// Fills `size` bytes at `address` from offset `offset` of the image's data; throws on failure.
using ReadData = std::function<void(void* address, size_t size, uint64_t offset)>;

// map, read every run, finish.
void load_memory(const MemoryTable& table, const ReadData& read);

}  // namespace fermata::split
