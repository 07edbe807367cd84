// Ranks is a set of ranks as ascending runs: what a message says of many ranks, and what a daemon or the root
// remembers of them. A node's neighbours in the job's numbering cost eight bytes together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wire/message.h"

namespace fermata::tree {

inline constexpr int32_t kMostRanks = 10'000'000;

class Ranks {
  public:
    Ranks() = default;
    explicit Ranks(int32_t rank) : runs_{{rank, 1}}, count_(1) {}
    // Takes runs from outside: none when they do not ascend, overlap, are empty or leave 0 .. kMostRanks - 1.
    static std::optional<Ranks> of(const std::vector<wire::Run>& runs);

    void add(const Ranks& others);
    void take_away(const Ranks& others);
    bool contains(int32_t rank) const;
    // One that both have.
    std::optional<int32_t> common(const Ranks& others) const;
    // How many are smaller than `rank`: its place in lists that follow the order of the set.
    size_t place_of(int32_t rank) const;

    uint32_t count() const { return count_; }
    bool empty() const { return runs_.empty(); }
    int32_t first() const { return runs_.front().first; }
    // The highest one; -1 = none.
    int32_t last() const {
        return runs_.empty() ? -1 : runs_.back().first + static_cast<int32_t>(runs_.back().count) - 1;
    }
    const std::vector<wire::Run>& runs() const { return runs_; }
    // "3, 7-9", not much longer than `most` characters.
    std::string text(size_t most) const;
    bool operator==(const Ranks&) const = default;

    template <class F>
    void each(F&& f) const {
        for (const wire::Run& run : runs_)
            for (uint32_t i = 0; i < run.count; ++i) f(run.first + static_cast<int32_t>(i));
    }

  private:
    template <class Keep>
    void combine(const Ranks& others, Keep keep);
    void append(int32_t first, int32_t end);
    std::vector<wire::Run> runs_;  // ascending, none touches the next
    uint32_t count_ = 0;
};

}  // namespace fermata::tree
