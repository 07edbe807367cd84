// BuddyCopies is the root's part of second copies in the memory of other nodes: which node is whose buddy,
// when a copy is due, and how far the one under way is. It sends by a function and waits for nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "keeping/account/settings.h"
#include "keeping/levels/copy_rounds.h"
#include "level/buddies.h"

namespace fermata::keeping {

class BuddyCopies {
  public:
    using Send = CopyRounds::Send;
    // `rounds`: how often nodes were told to fetch something, in this life of the job.
    BuddyCopies(const Settings& settings, Send send, uint32_t& rounds);

    // The job runs on these nodes. "", or why there can be no second copies: one line.
    std::string pair_up(const std::vector<std::string>& nodes);
    // What cannot be counted on, in one line; "" = nothing.
    const std::string& warning() const { return buddies_.warning(); }
    bool on() const { return !buddies_.all().empty(); }
    // Where a node's images are as well; "" = nowhere.
    std::string buddy_of(const std::string& node) const;
    const std::map<std::string, std::string>& all() const { return buddies_.all(); }

    // What is in whose memory: the newest generation, and where it is.
    struct What {
        std::vector<Generation> generations;  // oldest first; the last is the newest, and not all have copies
        const store::Manifest* manifest;      // of the newest
        const std::vector<std::string>* places;               // by rank
        const std::map<std::string, std::string>* addresses;  // by node
        std::map<std::string, std::vector<uint32_t>> by_node() const;
        std::string address_of(const std::string& node) const;  // "" = not known
    };
    // The time for a copy of this one has come.
    bool due(Generation newest, int64_t now) const;
    void start(const What& what, int64_t now);
    CopyRounds& rounds() { return copies_; }
    const CopyRounds& rounds() const { return copies_; }

  private:
    const Settings& settings_;
    uint32_t& rounds_;
    level::Buddies buddies_;
    CopyRounds copies_;
};

}  // namespace fermata::keeping
