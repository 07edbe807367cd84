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
#include <string>
#include <vector>

#include "base/range.h"
#include "split/address/maps.h"
#include "split/pages/flags.h"
#include "split/pages/table.h"
#include "split/shared/objects.h"

namespace fermata::split {

class DirtyTracker;

struct CollectedMemory {
    MemoryTable table;
    std::string maps;                         // /proc/self/maps, of which the table was made
    std::set<std::string> executed;           // files of which something may be executed
    std::map<uint64_t, shared::Key> objects;  // what MapEntry::object stands for
    // With a tracker, of each mapping: what has not been written since it was asked about before.
    std::vector<std::vector<Range>> unchanged;

    // True for memory that a copy of this process would not hold as it is now: shared memory, and files that
    // may be written to. Files of which something is executed are not.
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

// In a child: locks memory that was locked (mlock) again.
void lock_again(const MemoryTable& table) noexcept;

// Throws fermata::Error, naming the mapping, when something is in the way or a file is missing.
void map_memory(const MemoryTable& table);
void finish_memory(const MemoryTable& table);

// Fills `size` bytes at `address` from offset `offset` of the image's data; throws on failure.
using ReadData = std::function<void(void* address, size_t size, uint64_t offset)>;

// map, read every run, finish.
void load_memory(const MemoryTable& table, const ReadData& read);

}  // namespace fermata::split
