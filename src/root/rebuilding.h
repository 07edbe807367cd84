// Rebuilding finds out which images of a generation in memory are lost with nodes and can be made again from
// parity, and keeps account of the nodes that do it. It sends nothing and waits for nothing.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/generation.h"
#include "wire/message.h"

namespace fermata::root {

class Rebuilding {
  public:
    // What nodes have said that they have, by host, and where each rank waits.
    using Answers = std::map<std::string, wire::Copies>;
    // An order after which each rank's image, of `wanted` and of what it needs, is in the memory of some
    // node. None: nothing is missing, or it cannot be had. `all`: generations, among them what it needs.
    static std::optional<wire::Rebuild> order_for(const store::GenerationInfo& wanted,
                                                  const std::vector<store::GenerationInfo>& all,
                                                  const Answers& answers, uint32_t number);

    explicit Rebuilding(wire::Rebuild order);
    const wire::Rebuild& order() const { return order_; }
    // False: it is of another round.
    bool heard(const wire::Rebuilt& answer);
    bool done() const { return waiting_.empty(); }
    const std::vector<wire::Repair>& repaired() const { return done_; }
    // A line on what was rebuilt, one on what could not be; "" = nothing.
    std::string rebuilt() const;
    const std::string& error() const { return error_; }

  private:
    const wire::Rebuild order_;
    std::set<std::string> waiting_;
    std::vector<wire::Repair> done_;
    std::string error_;
};

}  // namespace fermata::root
