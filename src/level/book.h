// Book keeps account of a running job's generations: which are in memory, which in local directories of
// nodes, which in files, what may go and what has to be copied. No clock and no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/generation.h"
#include "store/generation.h"

namespace fermata::level {

class Book {
  public:
    // A generation exists now. `needs`: earlier ones whose images its images refer to, all of them.
    void committed(Generation generation, store::LevelName level, const std::vector<uint32_t>& needs);
    // It is in files, too, and everything that it needs.
    void flushed(Generation generation);
    // It is in the local directories of all nodes as well, and so is everything that it needs.
    void localed(Generation generation);
    // The same of one of a life before.
    void localed(Generation generation, const std::vector<uint32_t>& needs);
    // Each of its images is in the memory of a second node as well, and so is everything that it needs.
    void buddied(Generation generation);
    // Lost nodes can be borne: there is parity of it, and of everything that it needs.
    void encoded(Generation generation);
    // They are in files no more: retention has removed them.
    void only_in_files(const std::set<uint32_t>& left);

    Generation newest() const { return newest_; }
    std::vector<Generation> all_in(store::LevelName level) const;
    Generation newest_in(store::LevelName level) const;
    // In memory or in local directories; and in which of these it is read first.
    Generation newest_on_nodes() const;
    Medium medium_of(Generation generation) const;
    bool has(Generation generation, store::LevelName level) const;
    bool has_buddies(Generation generation) const;
    Generation newest_with_buddies() const;
    bool has_parity(Generation generation) const;
    Generation newest_with_parity() const;
    // The generation that images of the next one may refer to, when that goes to `level`: the newest, if all
    // that it stands for is there. None: they have to be whole.
    Generation base_at(store::LevelName level) const;
    // The newest at this level is kept, of memory also the newest with buddies and the newest with parity
    // unless files have a newer one, what is being copied, and what these need.
    std::vector<Generation> to_keep(Medium medium, const std::vector<Generation>& being_copied) const;
    // Forgets all others there.
    void keep(Medium medium, const std::vector<Generation>& kept);
    // What is to be copied, from medium_of() it, so that `generation` is in files, oldest first; itself is
    // the last. Empty: it is there, or cannot be had.
    std::vector<Generation> to_copy(Generation generation) const;
    // Likewise from memory so that it is in local directories.
    std::vector<Generation> to_local(Generation generation) const;
    // Likewise so that it has buddies.
    std::vector<Generation> to_buddies(Generation generation) const;
    // Likewise so that it has parity.
    std::vector<Generation> to_encode(Generation generation) const;

  private:
    struct Entry {
        bool memory = false, local = false, files = false;
        bool anywhere() const { return memory || local || files; }
        bool buddies = false;  // in memory twice
        bool parity = false;
        std::vector<uint32_t> needs;
    };
    template <class There>
    std::vector<Generation> missing(Generation generation, store::LevelName from, There there) const;
    void forget_lost();
    std::map<uint32_t, Entry> all_;
    Generation newest_;
};

}  // namespace fermata::level
