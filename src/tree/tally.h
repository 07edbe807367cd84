// Answers from below, added up. A node daemon, a daemon above daemons, and the root hold the same Tally:
// sums, lists, the first refusal, who is furthest behind. What a Tally hands up is again a message that a
// Tally takes, so levels may be stacked; tallies of tallies say what one flat tally says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tree/restart_phase.h"
#include "tree/warnings.h"
#include "wire/message.h"

namespace fermata::tree {

class Tally {
  public:
    // At the top nothing is handed on.
    enum class Level { between, top };
    explicit Tally(Level level) : level_(level) {}

    // All that is known. Sums and lists of a level in between hold what has not been handed up yet.
    struct Answers {
        std::string refusal;  // the first of this checkpoint
        bool again = false;   // it would not be refused a second time
        uint32_t closed = 0, frozen = 0, drained = 0, captured = 0, resumed = 0;
        uint64_t sent = 0, received = 0, open = 0;
        std::vector<wire::Sized> sized;
        std::vector<wire::Saved> saved;  // without errors
        uint64_t suspend_us = 0;         // of the slowest
        std::string save_error;          // the first
        Warnings warnings;
        // Not of a checkpoint, and never asked for:
        uint32_t restored = 0, finalized = 0;
        std::optional<wire::Restored> not_restored;  // the first
    };
    const Answers& answers() const { return answers_; }
    uint32_t epoch() const { return epoch_; }

    // No checkpoint is in progress: late answers count no more.
    void forget();
    // This goes down. Answers to it are counted from here on, those to an older question are late. Other
    // messages than questions change nothing.
    void ask(const wire::Message& question);
    // False: it is no answer that is added up.
    bool take(int child, const wire::Message& answer);
    // Nothing more comes from this child. What it has said stays counted, but for its phase.
    void gone(int child) { phases_.gone(child); }
    // The restart is over.
    void forget_phases() { phases_.clear(); }
    std::optional<wire::Phase> furthest_behind() const { return phases_.furthest_behind(); }

    // What goes up now: at once what cannot wait (a refusal, an error, a warning), the rest when all ranks
    // below have answered.
    std::vector<wire::Message> hand_up(uint32_t all);

  private:
    void count_anew();
    void refuse(uint32_t epoch, const std::string& why, bool again, const wire::Message& message);
    void saved(const wire::Saved& image);
    void at_once(const wire::Message& message);
    bool current(uint32_t epoch) const { return epoch != 0 && epoch == epoch_; }

    const Level level_;
    uint32_t epoch_ = 0, round_ = 0;
    Answers answers_;
    RestartPhases<int> phases_;
    std::optional<wire::Phase> told_phase_;
    std::vector<wire::Message> at_once_;
    uint64_t warned_ = 0;  // signals that were handed up since the last Begin
};

}  // namespace fermata::tree
