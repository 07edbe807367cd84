// LocalCopies is the root's part of copies of what is in the memory of nodes to their local directories: each
// node takes what is its own. It sends by a function and waits for nothing.
#pragma once

#include "keeping/levels/buddy_copies.h"

namespace fermata::keeping {

class LocalCopies {
  public:
    // `rounds`: how often nodes were told to fetch something, in this life of the job.
    LocalCopies(const Settings& settings, CopyRounds::Send send, uint32_t& rounds);

    // Memory comes first, and something is copied from there.
    bool on() const;
    bool due(Generation newest, int64_t now) const;
    void start(const BuddyCopies::What& what, int64_t now);
    CopyRounds& rounds() { return copies_; }
    const CopyRounds& rounds() const { return copies_; }

  private:
    const Settings& settings_;
    uint32_t& rounds_;
    CopyRounds copies_;
};

}  // namespace fermata::keeping
