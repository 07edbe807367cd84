// Warnings of ranks during one checkpoint, for its answer: the same line of several ranks is said once.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace fermata::tree {

class Warnings {
  public:
    // "rank 3: what" as ranks send it.
    void add(const std::string& text);
    // "ranks 0-2, 5: what", in the order in which they came first; at most some, the last one says how many
    // are left out.
    std::vector<std::string> lines() const;

  private:
    std::vector<std::string> order_;
    std::map<std::string, std::vector<int>> ranks_;
};

}  // namespace fermata::tree
