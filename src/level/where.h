// Where is a place that generations can be in, as the root keeps account of them (book.h): a level by its
// name, with its argument where it has one ("nfs:/scratch").
#pragma once

#include <compare>
#include <string>
#include <utility>

#include "store/generation.h"

namespace fermata::level {

class Where {
  public:
    // A place of its own: a generation that is there can be had from there.
    Where(store::LevelName level) : name_(store::name_of(level)) {}  // NOLINT: each level is a place
    explicit Where(std::string name) : name_(std::move(name)) {}
    // A second copy, or parity, of what is in memory: it goes with what is there.
    static Where beside_memory(std::string name) {
        Where where(std::move(name));
        where.beside_memory_ = true;
        return where;
    }
    bool is_beside_memory() const { return beside_memory_; }

    auto operator<=>(const Where&) const = default;

  private:
    std::string name_;
    bool beside_memory_ = false;
};

// Each image in the memory of a second node.
inline const Where kBuddies = Where::beside_memory("buddy");
// Parity of all images: lost nodes can be borne.
inline const Where kParity = Where::beside_memory("rs");

}  // namespace fermata::level
