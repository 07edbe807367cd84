// A whole job in one thread: ranks with and without a second copy, the library, the links of the tree, the
// root. What happens next is drawn from a seed. The machine, the exchange, the ends of output and the count
// of arrivals are the production ones; everything else is a model.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "copy.h"
#include "replay/finish.h"
#include "replay/output.h"

namespace fermata::replay::test {

// A failure at a given step: the death of a rank's leader, or a hop.
struct Moment {
    uint64_t step;
    std::optional<size_t> dies;
};

struct Plan {
    std::vector<bool> replicated;  // by rank
    bool level_node = false;       // a record is stable when it has come to the copy's node, not when written
    size_t ring = 4;               // records
    int kills = 0, hops = 0, drains = 0, clones = 0;
    std::vector<Moment> moments;  // besides those drawn; ascending
    int rarely = 20;              // one step in so many is such an event
    bool lazy = false;            // records stay on their way as long as something else can happen
    uint64_t log_bytes = 1 << 20;
    Rule away = Rule::none;
    bool rollbacks = true;  // a rank without a copy may die
    uint64_t step_limit = 200'000;
};

struct Result {
    std::string fault;  // empty: all checks held
    bool rolled_back = false;
    uint64_t steps = 0, kills = 0, hops = 0, drains = 0, clones = 0, promotions = 0, epochs = 0, resent = 0,
             debts = 0;
    uint64_t played = 0, orphans = 0;
};

class Job {
  public:
    Job(const Program& program, const Plan& plan, uint64_t seed);
    ~Job();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;
    Result run();
    bool tracing = false;

  private:
    struct Link {
        enum class Word { freeze, go, release } word;
        Epoch epoch{};
    };
    class Seat;
    enum class Stage { running, stopping, rebuilding };
    enum class Step : uint8_t {
        leader,
        follower,
        link,
        background,
        deliver,
        transfer,
        deliver_next,
        transfer_next,
        arrive,
        acknowledge,
        ring_ended,
        receipt,
        everywhere,
        forward,
        notice,
        exchange,
        rebuild,
        go,
        release,
        kCount,
    };

    size_t pick(size_t below) { return static_cast<size_t>(random_() % below); }
    void trace(const char* what, size_t index = 0);
    bool advance();
    bool take(Step step, size_t seat);
    bool event();
    bool kill();
    void die(size_t victim);
    void hop(const char* why);
    bool may_hop() const;
    void planned_event();
    bool drain();
    bool clone();
    bool deliver_link(Seat& seat);
    bool notice(Seat& seat);
    void begin_epoch();
    bool exchange();
    bool rebuild(size_t rank);
    bool go();
    bool release();
    bool ring_ended(Seat& seat);
    bool receipts(Seat& seat, bool all);
    bool everywhere();
    std::optional<ToldSet> everywhere_now(const Communicator& on) const;
    bool forward(Seat& seat);
    bool over() const;
    void check_end();
    void check_messages();
    void check_order();
    void check_collectives();
    Seat& seat_of(Rank rank) { return *seats_[rank.index()]; }
    bool calm() const;

    const Program& program_;
    Plan plan_;
    std::mt19937_64 random_;
    Result out_;
    std::vector<std::unique_ptr<Seat>> seats_;
    std::shared_ptr<Library> library_, next_;
    Epoch epoch_{};
    Stage stage_ = Stage::running;
    std::vector<Orders> orders_;
    Finish finish_;
    bool released_ = false;
    size_t next_moment_ = 0;
    std::map<Uid, ToldSet> everywhere_;

    friend class Seat;
};

}  // namespace fermata::replay::test
