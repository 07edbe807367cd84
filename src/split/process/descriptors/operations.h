// Operations on a kind of descriptors: each kind has a file and a line in the table (table.cpp).
#pragma once

#include <sys/types.h>

#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "split/process/descriptors/entry.h"
#include "split/process/descriptors/kind.h"
#include "split/process/parts.h"

namespace fermata::split::process::descriptors {

struct Operations;
class Restore;

// An open file description of the program's, by the lowest of its numbers, and what the state says of it.
struct Described {
    const Entry* entry;
    const Operations* operations;
    Json saved;
};

std::set<std::pair<dev_t, ino_t>> written_of(const std::vector<Entry>& entries);

// One capture of all descriptors.
struct Capture {
    Lines& warnings;
    std::vector<Entry> entries;  // every number
    std::vector<Described> all;  // every description
    std::set<std::pair<dev_t, ino_t>> written =
        written_of(entries);         // files that some number is open to write
    Json contents = Json::object();  // of files without a name, by inode
    Json pipes = Json::object();     // by inode
};

// A description as the state has it.
struct Description {
    const Json& saved;
    const Operations& operations;
    size_t index;     // among all descriptions
    int number;       // the first that means it
    int flags;        // F_GETFL
    std::string who;  // "descriptor 5", for people
};

struct Operations {
    Kind kind;

    // Is it one of these? Asked in the order of the table.
    bool (*is)(const Entry&);
    // Describes what its kind has beside what is said of all. Throws fermata::Error when a restart would go
    // wrong without a word.
    Json (*capture)(Capture&, const Entry&);
    // Once, when all are described: what those of this kind have to do with others.
    void (*relate)(Capture&) = nullptr;

    // A new one, not at its number yet. Gives none when it is refused with errno, unless it `may_be_missing`.
    // Throws Refused.
    Fd (*make)(Restore&, const Description&);
    // Once all have their numbers.
    void (*connect)(Restore&, const Description&, int made) = nullptr;

    bool has_offset = false;      // which is set again
    bool sets_flags = false;      // O_NONBLOCK and others, which making it did not set
    bool may_be_missing = false;  // where the new launcher has none
};

extern const Operations kInherited, kFile, kRemoved, kMemfd, kQueue, kDirectory, kRemovedDirectory, kDevice,
    kPipe, kFifo, kSocket, kEventfd, kTimerfd, kSignalfd, kEpoll, kInotify, kPidfd, kLost;

// The first that says `is`.
const Operations& operations_of(const Entry& entry);
// Finds the kind by the word of the state; throws Refused when a later Fermata has written it.
const Operations& operations_of(const std::string& word);

}  // namespace fermata::split::process::descriptors
