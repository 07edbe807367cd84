// Levels says at which levels the generations of a job are kept, and how often: the words of `--levels`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/medium.h"
#include "erasure/scheme.h"
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
    struct Parity {
        erasure::Scheme scheme;
        double period;  // seconds
    };
    std::optional<Parity> parity;  // over groups of nodes
    Domains domains;
    uint64_t copy_limit = 0;      // bytes a second of a node, to another level; 0 = by the period
    std::optional<double> files;  // seconds between generations in files; none: only what ends the job is

    // Throws Error (exit code 2) that names the word that is wrong, or that this Fermata cannot do yet.
    static Levels parse(const std::string& words);
    // As parse() reads it.
    std::string to_text() const;
    explicit operator bool() const { return memory || local; }
    // Of the first level; there is one.
    Medium first() const { return memory ? Medium::memory : Medium::local; }
    double interval() const { return memory ? *memory : local.value(); }

    // Bytes a second of a node at which `of_node` bytes are copied when half of `period`, in seconds, has
    // passed; what `copy_limit` says goes before it. 0: no limit.
    uint64_t rate(double of_node, double period) const;
};

}  // namespace fermata::level
