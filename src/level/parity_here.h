// ParityHere is the parity of a generation as far as it is in the memory of this machine: which of it is
// damaged, which images it gives back, and how it is made again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "erasure/rebuild.h"
#include "level/copies.h"

namespace fermata::level {

class ParityHere {
  public:
    // The shelves outlive this. Compares every byte of parity.
    ParityHere(const std::vector<Shelf>& shelves, uint64_t job, Generation generation);

    struct Damage {
        const Shelf* shelf;
        std::string why;
    };
    const std::vector<Damage>& damage() const { return damage_; }

    // Makes a rank's image anew on this shelf, and what is damaged there of the files that go with it. Gives
    // the names of all that was made. Throws Error when it cannot be had.
    std::vector<std::string> rebuild(const Shelf& shelf, Rank rank,
                                     const erasure::Rebuild::Check& check) const;
    // Makes the parity of this shelf anew. Throws Error unless all members of its group are here, intact.
    void encode(const Shelf& shelf) const;

  private:
    void look_at(const Shelf& shelf);
    void add(const erasure::Group& group);
    erasure::Folders folders_of(const erasure::Group& group) const;

    const std::vector<Shelf>& shelves_;
    const uint64_t job_;
    const Generation generation_;
    std::vector<erasure::Group> groups_;
    std::vector<Damage> damage_;
};

}  // namespace fermata::level
