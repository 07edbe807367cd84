// RollCall is how a daemon, or the root, knows who stands below it. The root calls the roll anew whenever a
// connection in the tree has ended. A call has a number and goes down all connections; a daemon answers each
// call once, to the parent through which it heard that call first. So nobody is counted in two places in one
// call, whatever is still on its way: what a child says counts from its answer to this call on, and what it
// said in an earlier call is gone. No I/O.
//
// A daemon that connects anew tells the newest call that it has answered. If that is an older one it may
// answer this call here; if not, it has answered elsewhere, and the root has to call once more.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "tree/ranks.h"
#include "wire/message.h"

namespace fermata::tree {

class RollCall {
  public:
    uint32_t number() const { return number_; }  // of this call; 0: none was heard
    // A new call: nobody has answered yet.
    void begin(uint32_t number);

    // A daemon has connected; `answered`: the newest call that it has answered anywhere.
    void came(int child, uint32_t answered);
    void left(int child);
    bool has(int child) const { return children_.count(child) != 0; }
    // True: the child shall hear this call now. False: it has answered it elsewhere.
    bool call(int child);
    // False: the answer is to another call.
    bool here(int child, const wire::Here& answer);
    // Whether a child has answered, and what it says counts.
    bool is_here(int child) const;

    // Ranks have joined, or gone, below this child. A rank that is named again changes nothing.
    void add_ranks(int child, const std::vector<wire::Group>& groups);
    void take_ranks(int child, const Ranks& ranks);
    uint32_t ranks() const { return ranks_; }

    // The child below which that daemon has answered; -1: it has not.
    int way_to(int node) const;
    // With how many ranks below each.
    std::map<int, uint32_t> children() const;

  private:
    struct Child {
        uint32_t answered;  // the newest call that it has heard
        bool here = false;
        Ranks ranks;
    };
    uint32_t number_ = 0;
    std::map<int, Child> children_;
    std::unordered_map<int, int> ways_;
    uint32_t ranks_ = 0;
};

// Daemons that say Here say these again: before that, they speak of an earlier call.
bool is_said_again(const wire::Message& message);

}  // namespace fermata::tree
