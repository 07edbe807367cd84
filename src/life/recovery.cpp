#include "life/recovery.h"

#include <fmt/core.h>

#include <algorithm>

namespace fermata::life {
namespace {

constexpr double kFirstPause = 1, kLongestPause = 300;  // seconds

// One rank that dies again is one failure, whatever its process is called; another rank is another failure.
bool same(const Life& one, const Life& other) { return one.code == other.code && one.rank == other.rank; }

}  // namespace

// A failure after progress may be anything, and the job goes on at once. Without a newer generation since the
// life before, a pause comes first, twice as long each time. The same failure twice in a row without one may
// lie in the generation: the one before it is tried, once.
Recovery::Next Recovery::after(const Life& life) {
    const bool progress = life.newest.number() > newest_.number() || life.saved_itself;
    const bool again = !progress && !lives_.empty() && same(lives_.back(), life);
    lives_.push_back(life);
    if (most_ == 0) return {};
    if (!life.newest && !life.saves_itself)
        return {Next::What::give_up, 0, "no checkpoint was taken before it failed"};
    if (left_ == 0) return {Next::What::give_up, 0, fmt::format("--max-restarts {} are used up", most_)};
    if (progress) {
        newest_ = life.newest;
        pause_ = 0;
        went_back_ = false;
    }
    if (again && went_back_)
        return {
            Next::What::give_up, 0,
            fmt::format("the same failure comes again and again without a checkpoint newer than {}",
                        life.saves_itself ? "the one that the program has saved itself" : newest_.name())};
    --left_;
    Next next{life.saves_itself ? Next::What::anew
              : again           ? Next::What::earlier
                                : Next::What::newest,
              pause_,
              {}};
    if (again) went_back_ = true;
    // A life that had come to nothing may just have met what the one before it left behind.
    pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
    return next;
}

std::vector<std::string> Recovery::report() const {
    std::vector<std::string> lines;
    if (lives_.size() < 2) return lines;
    lines.push_back(fmt::format("{:<4} {:<19} {:>9}  {:<10}  {:<10}  {}", "life", "began", "lasted", "from",
                                "newest", "failure"));
    size_t number = 0;
    for (const Life& life : lives_)
        lines.push_back(fmt::format("{:<4} {:<19} {:>7.1f} s  {:<10}  {:<10}  {} (exit code {})", ++number,
                                    life.began, life.seconds, life.from ? life.from.name() : "the start",
                                    life.saves_itself ? "its own"
                                    : life.newest     ? life.newest.name()
                                                      : "none",
                                    life.why.empty() ? "unknown" : life.why, life.code));
    return lines;
}

}  // namespace fermata::life
