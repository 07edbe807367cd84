// RoundOver is what became of one round of copies or parity between the memories of nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/generation.h"

namespace fermata::keeping {

struct RoundOver {
    std::vector<Generation> generations;  // oldest first
    std::string why_not;                  // "" = all nodes have theirs
    uint64_t bytes = 0;
    double seconds = 0;
};

}  // namespace fermata::keeping
