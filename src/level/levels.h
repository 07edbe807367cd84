// Levels says at which levels the generations of a job are kept, and how often. The words of `--levels` are
// read in src/keeping/levels/words.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/medium.h"
#include "level/domains.h"

namespace fermata::level {

// "memory 30s, local 5m, buddy 2m, rs:4+2 10m, files 1h" or "auto": every checkpoint goes to the first level,
// memory or else local, and one so often to the others.
struct Levels {
    bool automatic = false;        // the periods are measured and planned (keeping/account/auto_levels.h)
    std::optional<double> memory;  // seconds between checkpoints; none: nothing is kept in memory
    std::optional<double> local;   // between those in local directories
    std::optional<double> buddy;   // between second copies in another node's memory; 0 = of each generation
    bool buddy_anywhere = false;   // also of the same failure domain, where there is no other one
    std::optional<double> files;   // seconds between generations in files; none: only what ends the job is
    // Levels that an argument describes, by name: "rs:4+2 10m" is rs with the argument 4+2.
    struct Wish {
        std::string argument;
        double period;  // seconds
    };
    std::map<std::string, Wish> described;
    Domains domains;
    uint64_t copy_limit = 0;  // bytes a second of a node, to another level; 0 = by the period

    explicit operator bool() const { return memory || local; }
    // The medium of the first level; there is one.
    Medium first() const { return memory ? Medium::memory : Medium::local; }
    double interval() const { return memory ? *memory : local.value(); }
    // The wish for a described level; none: nobody wants it.
    const Wish* wish(const std::string& name) const {
        auto found = described.find(name);
        return found == described.end() ? nullptr : &found->second;
    }

    // Bytes a second of a node at which `of_node` bytes are copied when half of `period`, in seconds, has
    // passed; what `copy_limit` says goes before it. 0: no limit.
    uint64_t rate(double of_node, double period) const;
};

}  // namespace fermata::level
