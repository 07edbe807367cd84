// Cause is why a job fails, of what is heard of its ranks. A library that loses a peer ends its own process
// by PMI's abort (Open MPI 5's btl/tcp), and that may be heard before the peer's death: its node may be
// farther from the root. So an abort waits a moment for a cause. (The program's own MPI_Abort comes as
// wire::Fatal.)
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace fermata::launch::own {

struct Failure {
    int code = 1;  // of the job's end
    std::string line;
};

class Cause {
  public:
    static constexpr int64_t kMomentMs = 200;

    // Times are ms of one clock.
    void aborted(int32_t rank, Failure failure, int64_t now) {
        aborted_.insert(rank);
        if (!waits_ && !told_) waits_ = Waits{std::move(failure), now + kMomentMs};
    }
    // Whether the end of this rank's process is news: not when it follows its own abort.
    bool is_news(int32_t rank) const { return !aborted_.contains(rank); }
    // Gives the abort that nothing else has caused: at its time, or, when nobody is left to be heard,
    // `at_once`.
    std::optional<Failure> due(int64_t now, bool at_once) {
        if (!waits_ || (!at_once && now < waits_->until)) return std::nullopt;
        Failure failure = std::move(waits_->failure);
        waits_.reset();
        return failure;
    }
    // One has been told: nothing else is waited for.
    void told() {
        told_ = true;
        waits_.reset();
    }

  private:
    struct Waits {
        Failure failure;
        int64_t until = 0;
    };
    std::optional<Waits> waits_;
    std::set<int32_t> aborted_;
    bool told_ = false;
};

}  // namespace fermata::launch::own
