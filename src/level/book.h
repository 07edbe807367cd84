// Book keeps account of a running job's generations: where each of them is, what may go and what has to be
// copied. It knows places by name only (where.h), so that a new level needs nothing here. No clock and no
// I/O.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/generation.h"
#include "level/where.h"
#include "store/generation.h"

namespace fermata::level {

class Book {
  public:
    // A generation exists now. `needs`: earlier ones whose images its images refer to, all of them.
    void committed(Generation generation, store::LevelName level, const std::vector<uint32_t>& needs);
    // The generation has come to another place, and everything that it needs is there.
    void also_in(Generation generation, const Where& where);
    // A life before has left it there, with all that it needs.
    void left_in(Generation generation, const Where& where, const std::vector<uint32_t>& needs);
    // All others are not there any more: retention has removed them.
    void only_in(const Where& where, const std::set<uint32_t>& left);

    Generation newest() const { return newest_; }
    std::vector<Generation> all_in(const Where& where) const;
    Generation newest_in(const Where& where) const;
    bool has(Generation generation, const Where& where) const;
    // In memory or in local directories; and in which of these it is read first.
    Generation newest_on_nodes() const;
    Medium medium_of(Generation generation) const;
    // The generation that images of the next one may refer to, when that goes to `level`: the newest, if all
    // that it stands for is there. Gives none when images have to be whole.
    Generation base_at(store::LevelName level) const;
    // The newest at this level is kept, of memory also the newest with buddies and the newest with parity
    // unless files have a newer one, what is being copied, and what these need.
    std::vector<Generation> to_keep(Medium medium, const std::vector<Generation>& being_copied) const;
    // Forgets all others there.
    void keep(Medium medium, const std::vector<Generation>& kept);
    // Generations to be copied so that this one is there, oldest first, itself the last: from the place where
    // it is read first, or from memory. Empty: it is there already, or cannot be had.
    std::vector<Generation> to_copy(Generation generation, const Where& to) const;
    std::vector<Generation> to_copy_from_memory(Generation generation, const Where& to) const;

  private:
    struct Entry {
        std::set<Where> places;
        std::vector<uint32_t> needs;
        bool is_in(const Where& where) const { return places.count(where) > 0; }
        void lose(const Where& where);
    };
    std::vector<Generation> missing(Generation generation, const Where& from, const Where& to) const;
    void forget_lost();
    std::map<uint32_t, Entry> all_;
    Generation newest_;
};

}  // namespace fermata::level
