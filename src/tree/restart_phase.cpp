#include "tree/restart_phase.h"

#include <algorithm>

namespace fermata::tree {

wire::Phase merged(const wire::Phase& one, const wire::Phase& other) {
    wire::Phase both = one.phase <= other.phase ? one : other;
    if (one.phase == other.phase) {
        both.rank = std::min(one.rank, other.rank);
        both.there = one.there + other.there;
    }
    both.ranks = one.ranks + other.ranks;
    return both;
}

}  // namespace fermata::tree
