// Copies are the rounds of one level (buddy, local, rs, files): at its period the newest generation is copied
// there. The flow is the same for all levels and stands here; a level says what is missing, which order makes
// it, and what it means that all nodes have done it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "keeping/account/means.h"
#include "keeping/account/round.h"

namespace fermata::keeping {

// The end of one round.
struct RoundOver {
    std::vector<Generation> generations;  // oldest first
    std::string why_not;                  // "" = all nodes have done their part
    bool unable = false;                  // a node has said that it could not do its part
    uint64_t bytes = 0;
    double began = 0, seconds = 0;
    Generation newest() const { return generations.back(); }
};

class Copies : public Round {
  public:
    explicit Copies(Means& means) : means_(means) {}

    // Takes the nodes that the job runs on. "", or a line why they cannot have copies of this level.
    virtual std::string place_on(const std::vector<std::string>&) { return {}; }
    virtual const char* word() const = 0;  // of its level, in --levels
    // "second copies": what a job goes on without when place_on() has said why.
    virtual const char* name() const = 0;
    // A line on what cannot be counted on; "" = nothing.
    virtual std::string warning() const { return {}; }
    // Nodes write into their memory: not while something is mended there, and nothing is mended meanwhile.
    virtual bool writes_memory() const { return false; }
    // Nodes copy to a directory outside, which each does for one order at a time.
    virtual bool goes_to_files() const { return false; }
    // True if it has to know which images the newest generation on nodes has (Account::newest).
    virtual bool reads_manifest() const { return false; }

    bool is_under_way() const { return under_way_.has_value(); }
    // The newest of those being copied; none: nothing is.
    Generation copying() const { return under_way_ ? under_way_->result.newest() : Generation(); }
    // Nobody waits for what is under way any more.
    void drop() { under_way_.reset(); }

    bool heard(const wire::Message& message) override;
    void say_again() override;
    std::vector<Generation> in_use() const override;
    bool turn(const Moment& moment) override;
    // Ends the round under way when that is over: true then.
    bool end_what_is_over(const std::set<std::string>& here);
    // The round that was under way, if it is over.
    std::optional<RoundOver> over(const std::set<std::string>& here);

  protected:
    struct Order {
        wire::Message message;
        std::set<std::string> nodes;  // that answer it
    };
    struct Answer {
        uint32_t number = 0;
        std::string host;
        uint64_t bytes = 0;
        std::string error;
    };
    // The generation to be copied next, when it is due.
    virtual Generation newest() const;
    virtual bool is_due(Generation newest, int64_t now);
    // Seconds between two rounds; none: nobody wants this level, or place_on() has said no.
    virtual std::optional<double> period() const = 0;
    // Generations to be copied so that this one is there, oldest first, itself the last. Empty: it is there
    // already, or cannot be had.
    virtual std::vector<Generation> missing(Generation newest) const = 0;
    // An Error that it throws is why nothing is copied.
    virtual Order order(const std::vector<Generation>& generations, uint32_t number) = 0;
    virtual std::optional<Answer> answer_in(const wire::Message& message) const = 0;
    // False: the others are waited for although one has failed, since what they write would be in the way of
    // the next order.
    virtual bool ends_with_first_error() const { return false; }
    // Notes that all of it is there: from now on it counts. An exception from it is why it does not.
    virtual void count(RoundOver& over) = 0;
    virtual void failed(const RoundOver&) {}
    virtual void tell(const RoundOver& over) = 0;

    // The same for levels whose copies go from node to node,
    static Order order_of(const wire::Fetch& fetch);
    static std::optional<Answer> fetched_in(const wire::Message& message);
    // and for those whose copies go to a directory outside.
    static Order order_of(const wire::Flush& flush);
    static std::optional<Answer> flushed_in(const wire::Message& message);

    void begin(const std::vector<Generation>& generations, int64_t now);
    // Says `done`, with size and seconds, or `failed` with the reason; the same reason is said once.
    void tell(const RoundOver& over, const char* done, const char* failed);
    const std::string& trouble() const { return trouble_; }  // of the last one
    Order* order_under_way() { return under_way_ ? &under_way_->order : nullptr; }

    Means& means_;

  private:
    struct UnderWay {
        uint32_t number;
        Order order;
        std::set<std::string> waiting;
        RoundOver result;
    };
    bool must_wait(const Moment& moment) const;
    void settle(RoundOver over);
    void note(const RoundOver& over) const;  // in the journal

    std::optional<UnderWay> under_way_;
    int64_t begun_ = 0;    // ms: when the newest one was begun
    Generation newest_;    // that was begun, whatever became of it
    std::string trouble_;  // that was said
};

}  // namespace fermata::keeping
