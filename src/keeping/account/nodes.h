// Nodes is all that src/keeping knows of a job's node daemons: which are there, and how to tell them
// something.
#pragma once

#include <set>
#include <string>

#include "wire/message.h"

namespace fermata::keeping {

class Nodes {
  public:
    virtual ~Nodes() = default;
    // Names of the nodes whose daemons are there, or may come back.
    virtual std::set<std::string> hosts() const = 0;
    // Names of the nodes that have ranks.
    virtual std::set<std::string> hosts_with_ranks() const = 0;
    // True: every daemon has answered the newest call of the roll.
    virtual bool whole() const = 0;
    // Sends it to all daemons.
    virtual void tell(const wire::Message& message) = 0;
};

}  // namespace fermata::keeping
