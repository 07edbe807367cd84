// CopyRounds are copies of the newest generation in memory that are made so often: when the next one is due,
// and how far the one under way is. What goes where is said by who starts one. It sends by a function and
// waits for nothing.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "keeping/levels/round_over.h"
#include "keeping/orders/fetching.h"

namespace fermata::keeping {

class CopyRounds {
  public:
    using Send = std::function<void(const wire::Message&)>;
    explicit CopyRounds(Send send) : send_(std::move(send)) {}

    // The time for a copy of this one has come. `period`: seconds between two of them.
    bool due(Generation newest, double period, int64_t now) const;
    // `generations`: oldest first; the last is the newest.
    void start(std::vector<Generation> generations, const wire::Fetch& order, int64_t now);
    bool heard(const wire::Message& message);
    void say_again();
    // Being copied; of none: empty.
    std::vector<Generation> under_way() const;
    // The one that was under way, if it is over. `here`: nodes that may still answer.
    std::optional<RoundOver> over(const std::set<std::string>& here);

  private:
    const Send send_;
    std::optional<Fetching> fetching_;
    std::vector<Generation> generations_;
    double began_ = 0;   // s
    int64_t begun_ = 0;  // ms: when the newest one was begun
    Generation newest_;  // that was begun, whatever became of it
};

}  // namespace fermata::keeping
