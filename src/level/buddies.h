// Buddies says which node keeps a second copy of what each node has in memory: always another one, and one of
// another failure domain. No I/O.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "level/domains.h"

namespace fermata::level {

class Buddies {
  public:
    Buddies() = default;
    // `anywhere`: where all nodes are of one domain, nodes of the same one will do.
    Buddies(std::vector<std::string> nodes, const Domains& domains, bool anywhere);

    // "": each node has a buddy; else why there is none.
    const std::string& why_not() const { return why_not_; }
    // A line on what cannot be counted on; "" = nothing.
    const std::string& warning() const { return warning_; }
    // The buddy of each node, by its name.
    const std::map<std::string, std::string>& all() const { return buddy_; }

  private:
    void check() const;
    std::map<std::string, std::string> buddy_;
    std::string why_not_, warning_;
};

}  // namespace fermata::level
