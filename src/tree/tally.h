// Answers from below, added up. A node daemon, a daemon above daemons, and the root hold the same Tally:
// sums, lists, the first refusal, who is furthest behind. The message that a Tally hands up is again one that
// a Tally takes, so levels may be stacked; tallies of tallies say what one flat tally says.
//
// A Tally knows what each child has said. The words of a child replace what it said before to the same
// question, and go with the child: a child that moves from one daemon to another says all of it again there,
// and nothing is lost or counted twice.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tree/block_times.h"
#include "tree/ranks.h"
#include "tree/restart_phase.h"
#include "tree/warnings.h"
#include "wire/message.h"

namespace fermata::tree {

class Tally {
  public:
    // At the top nothing is handed on.
    enum class Level { between, top };
    explicit Tally(Level level) : level_(level) {}

    // A number of ranks, and what they have counted.
    struct Count {
        uint32_t ranks = 0;
        uint64_t sent = 0, received = 0, open = 0;
        bool operator==(const Count&) const = default;
    };
    // The sum of what all children have said to the newest question.
    struct Answers {
        std::string refusal;  // the first of this checkpoint
        bool again = false;   // it would not be refused a second time
        Count closed, frozen, drained, captured, resumed;
        uint32_t sized = 0, saved = 0;  // ranks; saved: without errors
        uint32_t logs = 0;              // ranks that have said the counts of their message log
        uint64_t suspend_us = 0;        // of the slowest
        std::string save_error;         // the first
        Warnings warnings;
        // Not of a checkpoint, and never asked for:
        Count restored, finalized;
        std::optional<wire::Restored> not_restored;  // the first
    };
    const Answers& answers() const { return answers_; }
    uint32_t epoch() const { return epoch_; }

    // No checkpoint is in progress: late answers count no more.
    void forget();
    // This goes down. Answers to it are counted from here on, those to an older question are late. Other
    // messages than questions change nothing.
    void ask(const wire::Message& question);
    // Is it of the kinds that replace what a child has said before?
    static bool replaces(const wire::Message& answer);
    // False: it is no answer that is added up.
    bool take(int child, const wire::Message& answer);
    // Nothing more comes from this child, and what it has said counts no more.
    void gone(int child);
    // Forgets the same of all children.
    void nobody_is_here();
    // The restart is over.
    void forget_phases() { phases_.clear(); }
    std::optional<wire::Phase> furthest_behind() const { return phases_.furthest_behind(); }

    // Gives the messages that go up now: at once what cannot wait (a refusal, an error, a warning), the rest
    // when all ranks below have answered. Answers that may come in parts (Restored, Resumed, ArrivedFinalize)
    // are handed up in parts only when it is `time` for that.
    std::vector<wire::Message> hand_up(uint32_t all, bool time = true);
    // Parts wait for their time.
    bool parts_wait() const;
    // A new parent has heard nothing yet.
    void say_again();

    // Calls f(rank, bytes), f(rank, image) for every rank that has answered, in any order.
    template <class F>
    void each_size(F&& f) const;
    template <class F>
    void each_image(F&& f) const;
    // Calls f(rank, bytes of what its message log says).
    template <class F>
    void each_log(F&& f) const;
    // Earlier generations that the images refer to.
    std::set<Generation> needs() const;
    // How long the ranks took that have answered.
    BlockTimes block_times() const;

  private:
    struct Sizes {
        Ranks ranks;
        std::vector<uint64_t> bytes;
    };
    struct Logs {
        Ranks ranks;
        std::vector<wire::Bytes> said;
    };
    struct Images {
        Ranks ranks;
        std::vector<wire::ImageRecord> records;
        uint64_t suspend_us = 0;
        std::vector<Generation> needs;
        BlockTimes times;
    };
    struct Said {
        Count closed, frozen, drained, captured, resumed, restored, finalized;
        Sizes sizes;
        Images images;
        Logs logs;
    };
    void count_anew();
    void refuse(uint32_t epoch, const std::string& why, bool again, const wire::Message& message);
    bool count(Said& said, const wire::Message& answer);
    void replace(Count& old, Count& sum, const Count& now);
    void sized(Said& said, const wire::Sizes& sizes);
    void saved(Said& said, const wire::Images& images);
    void log_said(Said& said, const wire::LogsSaid& logs);
    void refuse_logs(const std::string& why);
    void save_failed(const std::string& error);
    wire::Images failed_images() const;
    void at_once(const wire::Message& message);
    template <class Make>
    void hand_up_count(Count& told, const Count& now, bool may, const Make& make);
    wire::Sizes all_sizes() const;
    wire::Images all_images() const;
    wire::LogsSaid all_logs() const;
    bool current(uint32_t epoch) const { return epoch != 0 && epoch == epoch_; }

    const Level level_;
    uint32_t epoch_ = 0, round_ = 0;
    Answers answers_;
    std::map<int, Said> said_;  // by child
    RestartPhases<int> phases_;
    std::vector<wire::Message> at_once_, up_;
    uint64_t warned_ = 0;  // signals that were handed up since the last Begin
    // The part of this question's answers that has been handed up.
    struct {
        Count closed, frozen, drained, captured, resumed, restored, finalized;
        uint32_t sized = 0, saved = 0, logs = 0;
        bool sizes_changed = false, images_changed = false, logs_changed = false;  // since then
        std::optional<wire::Phase> phase;
    } told_;
};

template <class F>
void Tally::each_size(F&& f) const {
    for (const auto& one : said_) {
        const Sizes& sizes = one.second.sizes;
        size_t at = 0;
        sizes.ranks.each([&](int32_t rank) { f(rank, sizes.bytes[at++]); });
    }
}

template <class F>
void Tally::each_image(F&& f) const {
    for (const auto& one : said_) {
        const Images& images = one.second.images;
        size_t at = 0;
        images.ranks.each([&](int32_t rank) { f(rank, images.records[at++]); });
    }
}

template <class F>
void Tally::each_log(F&& f) const {
    for (const auto& one : said_) {
        const Logs& logs = one.second.logs;
        size_t at = 0;
        logs.ranks.each([&](int32_t rank) { f(rank, logs.said[at++]); });
    }
}

}  // namespace fermata::tree
