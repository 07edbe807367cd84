// Members says which processes play each rank of a job whose ranks keep a message log: who has a copy, who
// shall have one, and why somebody has none. No clock and no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tree/ranks.h"

namespace fermata::root {

class Members {
  public:
    struct Copy {
        int32_t pid = 0;
        std::string host;
        int node = -1;  // key of Tree::nodes
    };

    // Ranks that shall have copies from now on. Gives those whose copies are to end.
    tree::Ranks want(const tree::Ranks& ranks);
    const tree::Ranks& wanted() const { return wanted_; }
    tree::Ranks had() const;
    // Wanted ones without a copy, whatever the reason.
    tree::Ranks lacking() const;
    // Null: it has none.
    const Copy* copy_of(int32_t rank) const;
    tree::Ranks copies_on(int node) const;
    // Why a rank has none, as far as anybody has said; "" = nobody has.
    std::string why_none(int32_t rank) const;

    // Nobody can make one, as it has said; a copy that was there and has ended is no such reason.
    bool is_refused(int32_t rank) const;

    // A number of this table: it grows when a rank is played by another process, or has lost its copy.
    uint32_t epoch() const { return epoch_; }

    // ---- what is heard of copies

    // False: this rank shall have none (any more).
    bool made(int32_t rank, Copy copy);
    // False: that process is not its copy (any more).
    bool ended(int32_t rank, int32_t pid, const std::string& why);
    // False: the same has been said of it before.
    bool refused(int32_t rank, const std::string& why);
    void promoted(int32_t rank);
    // Every rank has a new process.
    void renewed() { ++epoch_; }
    // Nobody knows why any more: they are tried once more.
    void forget_reasons() { why_none_.clear(); }

  private:
    tree::Ranks wanted_;
    std::map<int32_t, Copy> copies_;
    std::map<int32_t, std::string> why_none_, said_;
    uint32_t epoch_ = 1;
};

}  // namespace fermata::root
