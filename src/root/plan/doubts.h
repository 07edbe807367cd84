// Doubts are questions of ranks whose libraries have lost connections: do all ranks live? A round of answers
// by all daemons settles them. No clock and no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace fermata::root {

class Doubts {
  public:
    void asked(int32_t rank, uint64_t number) { waiting_[rank] = number; }
    // Gives the number of a round that begins now with these daemons; nothing when nobody waits for one, one
    // is under way with these very daemons, or it is not time yet.
    std::optional<uint64_t> begin(std::set<int> nodes, int64_t now);
    // Gives the questions that are answered by it: all ranks lived after they had been asked.
    std::map<int32_t, uint64_t> answered(int node, uint64_t round, bool all, int64_t now);

  private:
    std::map<int32_t, uint64_t> waiting_, settling_;  // number by rank; these in the round under way
    std::set<int> nodes_, missing_;                   // of the round
    uint64_t round_ = 0;
    int64_t not_before_ = 0;  // ms: a process on its way out is given a moment
};

}  // namespace fermata::root
