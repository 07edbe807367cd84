// ParityRounds is the root's part of erasure code between nodes while the job runs: which nodes are a group,
// when parity is due, and how far the round under way is. It sends by a function and waits for nothing.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "keeping/account/settings.h"
#include "keeping/levels/round_over.h"
#include "wire/message.h"

namespace fermata::keeping {

class ParityRounds {
  public:
    using Send = std::function<void(const wire::Message&)>;
    ParityRounds(const Settings& settings, Send send) : settings_(settings), send_(std::move(send)) {}

    // The job runs on these nodes. "", or why they cannot bear the losses: one line.
    std::string group_up(const std::vector<std::string>& nodes);
    bool on() const { return !groups_.empty(); }

    // What is in whose memory.
    struct What {
        std::vector<Generation> generations;  // oldest first; the last is the newest, and not all have parity
        uint64_t bytes = 0;                   // of the newest
        const std::vector<std::string>* places;               // by rank
        const std::map<std::string, std::string>* addresses;  // by node
    };
    // The time for parity of this one has come.
    bool due(Generation newest, int64_t now) const;
    void start(const What& what, int64_t now);
    bool heard(const wire::Message& message);
    void say_again();
    // Nobody waits for what is under way any more.
    void drop() { round_.reset(); }
    // Being encoded; of none: empty.
    std::vector<Generation> under_way() const;
    // The one that was under way, if it is over. `here`: nodes that may still answer.
    std::optional<RoundOver> over(const std::set<std::string>& here);

  private:
    struct Round {
        wire::Encode order;
        std::set<std::string> waiting;  // nodes
        RoundOver result;
        double began = 0;  // s
    };
    const Settings& settings_;
    const Send send_;
    std::vector<std::vector<std::string>> groups_;  // of nodes
    std::optional<Round> round_;
    uint32_t rounds_ = 0;
    int64_t begun_ = 0;  // ms: when the newest one was begun
    Generation newest_;  // that was begun, whatever became of it
};

}  // namespace fermata::keeping
