// Whereabouts keeps where memory that still has to be filled lies now. The program may unmap, empty and move
// such memory before its content has been read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/range.h"

namespace fermata::image {

class Whereabouts {
  public:
    struct Part {
        uint64_t now, was, length;
    };

    // Adds memory of the image that still lies at its own addresses.
    void add(Range memory);
    // The program has unmapped or emptied these present addresses: the image's memory there is not needed.
    void forget(Range present);
    // The program moves memory from `from` to `to`; what lay at `to` is forgotten.
    void move(uint64_t from, uint64_t to, uint64_t length);

    // Present places of this memory of the image; parts that are not needed are left out.
    std::vector<Part> now_of(Range was) const;
    // Address in the image of what belongs at the present address `now`.
    std::optional<uint64_t> was_of(uint64_t now) const;

  private:
    void put(const Part& part);
    std::map<uint64_t, Part> by_now_, by_was_;  // the same parts, which never overlap
};

}  // namespace fermata::image
