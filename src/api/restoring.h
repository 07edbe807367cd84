// Restoring brings the newest generation back that all ranks can have, on as many ranks as there are.
//
// The phases of one attempt:
//
//     choose   a generation is named, newest first: in memory, or in the directory of files
//     look     the ranks read the tables of its images between them, and hand them round
//     match    names, types and shapes are compared with what is protected
//     fetch    images in the memory of other nodes come to this one
//     fill     each rank reads from the images what its parts need
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/memory.h"
#include "api/ranks.h"
#include "api/state.h"
#include "api/table.h"
#include "image/image.h"
#include "store/store.h"

namespace fermata::api {

struct Restored {
    uint64_t job = 0;
    uint32_t generation = 0;
    int64_t step = 0;
    bool from_memory = false;
};

class Restoring {
  public:
    // `memory`: null = none.
    Restoring(const Ranks& ranks, const State& state, std::string directory, image::KeyPointer key,
              const Memory* memory)
        : ranks_(ranks),
          state_(state),
          directory_(std::move(directory)),
          key_(std::move(key)),
          memory_(memory) {}

    // `wanted`: a step, or whatever is newest. Gives nothing when nothing, or nothing of that step, was ever
    // saved there. Throws Fault, the same on all ranks. Collective.
    std::optional<Restored> run(std::optional<int64_t> wanted = {});
    // Lists all steps that can be chosen, newest first. The same on all ranks. Collective.
    std::vector<int64_t> steps();

  private:
    struct Candidate {
        uint32_t number;
        int64_t step;
        std::string seal;                    // of one in files
        std::optional<Memory::Found> found;  // of one in memory
    };
    std::vector<Candidate> choose() const;
    std::vector<Candidate> all_candidates();
    Restored attempt(const Candidate& candidate);
    void look(const std::vector<int>& from);
    std::string needs() const;
    void match() const;
    void fill();
    void fill_array(const std::string& name, const Entry& entry);
    void fill_own(const std::string& name, const Entry& entry, size_t from);
    const image::Reader& reader(size_t rank);

    const Ranks& ranks_;
    const State& state_;
    const std::string directory_;
    const image::KeyPointer key_;
    const Memory* const memory_;
    std::string lost_;  // why what was in memory cannot be had
    store::GenerationInfo generation_;
    std::vector<Table> tables_;                         // by rank that saved it
    std::vector<std::unique_ptr<image::Reader>> open_;  // likewise, as they are needed
};

}  // namespace fermata::api
