// A Roster knows which rank has which object, during one checkpoint.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/rank.h"
#include "split/shared/objects.h"

namespace fermata::split::shared {

struct Member {
    Rank rank;
    Use use;
};

struct Object {
    std::vector<Rank> ranks;     // in order, this one too
    std::vector<Range> lower;    // content that lower ranks save
    std::vector<Range> mapped;   // that this rank saves from its mappings
    std::vector<Range> covered;  // that somebody saves
    uint64_t size = 0;
    bool writable = false;       // some rank may write through a mapping
    std::optional<Rank> opener;  // lowest rank that has it open
    std::optional<Rank> reader;  // lowest that can read from it
};

class Roster {
  public:
    // All uses of all ranks, as this one was told.
    Roster(Rank rank, const std::vector<Member>& all);

    Rank rank() const { return rank_; }
    const Object* find(const Key& key) const;
    bool with_others(const Key& key) const;
    // Is this the lowest rank that has it?
    bool first(const Key& key) const;
    const std::map<Key, Object>& objects() const { return objects_; }

  private:
    Rank rank_;
    std::map<Key, Object> objects_;  // those of this rank
};

// The roster of the checkpoint in progress; null = every object counts as this rank's own.
const Roster* roster();
void set_roster(const Roster* roster);

}  // namespace fermata::split::shared
