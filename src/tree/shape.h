// Shape is where a daemon stands in the tree: computed from its number (the order in which daemons come) and
// the radix; who is missing is left out. Nobody agrees on anything, and who knows the three knows the tree.
//
// The first `radix` daemons stand below the root, each of the next ones below one that came before, in turn:
// so levels fill evenly, and a daemon's parent always has a smaller number (there are no circles).
#pragma once

#include <cstddef>
#include <vector>

namespace fermata::tree {

inline constexpr int kRoot = -1;

class Shape {
  public:
    explicit Shape(size_t radix) : radix_(radix > 0 ? radix : 1) {}

    int parent(int node) const {
        auto at = static_cast<size_t>(node);
        size_t level = radix_, begin = 0;  // how many stand on this level, and the number of the first
        for (size_t above = 0; at >= begin + level; level *= radix_) {
            above = begin;
            begin += level;
            if (at < begin + level * radix_) return static_cast<int>(above + (at - begin) % level);
        }
        return kRoot;
    }
    // Parent first, without the root.
    std::vector<int> ancestors(int node) const {
        std::vector<int> all;
        for (int at = parent(node); at != kRoot; at = parent(at)) all.push_back(at);
        return all;
    }

  private:
    size_t radix_;
};

}  // namespace fermata::tree
