// Takeovers are ranks that have died and whose copies on other nodes have not taken their places yet. No
// clock and no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tree/ranks.h"

namespace fermata::root {

class Takeovers {
  public:
    struct One {
        int32_t rank = -1;
        int to = -1;            // the copy's node, as Tree::nodes has it
        int64_t at = 0;         // ms: not before, since the rank may live until then
        std::string from, how;  // its host; how it died
        std::string line;       // for people, of its node; "" = nobody has been told of this death yet
        bool told = false;      // the copy's daemon
    };

    void add(One one);
    // Those whose time has come, once each.
    std::vector<One> due(int64_t now);
    // Its copy speaks for the rank, or nobody does any more. Gives what is known of it; a rank of -1:
    // nothing.
    One over(int32_t rank);
    bool any() const { return !all_.empty(); }
    // Ranks that wait for copies on this node.
    tree::Ranks to(int node) const;

  private:
    std::vector<One> all_;
};

}  // namespace fermata::root
