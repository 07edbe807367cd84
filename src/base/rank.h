// Ranks as types. A Rank is a process of the job as the program knows it, a PhysicalRank one of the MPI
// library's MPI_COMM_WORLD below; a RankRange is neighbouring Ranks. A number that comes from outside (a
// file, a message, the environment) becomes one of them only by a function that checks it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/invariant.h"

namespace fermata {

class Rank {
  public:
    // A job has no more: a larger number is damage.
    static constexpr uint32_t kMost = 10'000'000;

    // Takes a number of ours; a number from outside comes through among().
    constexpr explicit Rank(uint32_t number) : number_(number) {
        always(number < kMost, "a rank that no job has");
    }
    // Gives a rank only when a job of so many ranks has it.
    static constexpr std::optional<Rank> among(int64_t number, uint64_t ranks) {
        if (number < 0 || static_cast<uint64_t>(number) >= ranks || number >= int64_t{kMost}) return {};
        return Rank(static_cast<uint32_t>(number));
    }
    // The same where it is not known how many ranks there are.
    static constexpr std::optional<Rank> of(int64_t number) { return among(number, kMost); }

    constexpr uint32_t number() const { return number_; }
    constexpr size_t index() const { return number_; }  // in a list with an entry for each rank
    constexpr auto operator<=>(const Rank&) const = default;

  private:
    uint32_t number_;
};

class PhysicalRank {
  public:
    constexpr explicit PhysicalRank(int number) : number_(number) {
        always(number >= 0, "a process that the MPI library does not have");
    }
    constexpr int number() const { return number_; }
    constexpr auto operator<=>(const PhysicalRank&) const = default;

  private:
    int number_;
};

// The seam: the one place that knows which process of the library's world plays which rank of the program:
// the one of the same number, always. Whoever takes a rank's place, in another lower half or as its copy,
// gets the rank's number in a new world, so nothing is looked up here. The processes that play a rank, with
// an epoch, are in the root's table (root/plan/members.h).
constexpr PhysicalRank physical_rank(Rank rank) { return PhysicalRank(static_cast<int>(rank.number())); }
constexpr Rank played_by(PhysicalRank process) { return Rank(static_cast<uint32_t>(process.number())); }

// Neighbouring ranks: at least one, and all of them below Rank::kMost.
class RankRange {
  public:
    constexpr RankRange(Rank first, uint32_t count) : first_(first), count_(count) {
        always(count > 0 && count <= Rank::kMost - first.number(), "ranks that no job has");
    }
    // Takes numbers from outside; none: no job has these ranks.
    static constexpr std::optional<RankRange> of(int64_t first, uint64_t count) {
        auto begin = Rank::of(first);
        if (!begin || count == 0 || count > Rank::kMost - begin->number()) return {};
        return RankRange(*begin, static_cast<uint32_t>(count));
    }

    constexpr Rank first() const { return first_; }
    constexpr uint32_t count() const { return count_; }
    constexpr uint32_t end() const { return first_.number() + count_; }  // of the first one behind
    constexpr bool holds(Rank rank) const { return rank >= first_ && rank.number() < end(); }
    template <class F>
    constexpr void each(F&& f) const {
        for (uint32_t number = first_.number(); number < end(); ++number) f(Rank(number));
    }
    constexpr auto operator<=>(const RankRange&) const = default;

  private:
    Rank first_;
    uint32_t count_;
};

}  // namespace fermata
