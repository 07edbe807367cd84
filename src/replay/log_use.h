// LogUse counts what a message log takes: bytes in memory, and bytes that its caller has written to a file,
// since others may need them for long.
#pragma once

#include "replay/memory.h"
#include "replay/types.h"

namespace fermata::replay {

// Bytes of the log that are not in memory. The caller chooses the place; the digest finds other bytes there.
struct Spilled {
    uint64_t place, size, digest;
    bool operator==(const Spilled&) const = default;
};

struct LogUse {
    uint64_t held = 0, spilled = 0;
    Vec<Spilled> over{};  // of entries that are gone: their places are free

    void add(uint64_t bytes) { held += bytes; }
    template <class Entry>
    void leaves(const Entry& entry) {
        held -= entry.held();
        if (!entry.spilled) return;
        spilled -= entry.spilled->size;
        over.push_back(*entry.spilled);
    }
    void spills(const Spilled& to) {
        held -= to.size;
        spilled += to.size;
    }
    void comes_back(const Spilled& from) {
        held += from.size;
        spilled -= from.size;
        over.push_back(from);
    }
};

}  // namespace fermata::replay
