// Mending has every copy of a running job's generations looked at by the node daemons, and what is damaged or
// missing taken from another copy or rebuilt from parity.
#pragma once

#include <array>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "keeping/account/means.h"
#include "keeping/account/round.h"
#include "keeping/orders/asking.h"
#include "keeping/orders/fetching.h"
#include "keeping/orders/inspecting.h"
#include "keeping/orders/rebuilding.h"

namespace fermata::keeping {

class Mending : public Round {
  public:
    explicit Mending(Means& means) : means_(means) {}

    // Looks at all copies, or at those of one generation and of what it needs, and mends them; `client` has
    // asked for it; -1: nobody has.
    void start(Generation only, int client);
    bool under_way() const { return step_ != Step::none; }
    // Once: to whom the report goes; -1: to nobody, or it is not over.
    int take_client() { return under_way() ? -1 : std::exchange(what_.client, -1); }

    std::vector<Generation> in_use() const override {
        return under_way() ? what_.in_memory : std::vector<Generation>();
    }
    bool heard(const wire::Message& message) override;
    void say_again() override;
    // Begins when a copy to files leaves a doubt, and goes on while nothing else writes to the memory of
    // nodes.
    bool turn(const Moment& moment) override;

    // A line on something, of a generation.
    struct Line {
        Generation generation;
        std::string text;
    };
    // Once it is over.
    const std::vector<Line>& mended() const { return mended_; }
    const std::vector<Line>& left() const { return left_; }

  private:
    // Generations in memory, as the root knows them when it begins.
    struct What {
        int client = -1;
        Generation only;  // none: all
        std::vector<Generation> in_memory;
        std::set<Generation> twice;        // whose images are to be in the memory of two nodes
        std::set<Generation> with_parity;  // all nodes of a group are to have theirs
    };
    enum class Step { none, looking, fetching, rebuilding, inspecting, encoding, looking_again };
    // Something that is not there, in the memory of a node, or not as it was written.
    struct Flaw {
        Generation generation;
        int32_t rank = -1;  // -1: parity
        std::string host, why;
        bool operator<(const Flaw& other) const {
            return std::tie(generation, rank, host) < std::tie(other.generation, other.rank, other.host);
        }
        std::string what() const;
    };
    bool go_on();
    void say_what_was_mended() const;
    void ask(Step step);
    void enter(Step step);
    bool is_done();
    void end_of_step();
    std::set<Flaw> flaws() const;
    void add_missing(const store::GenerationInfo& info, std::set<Flaw>& flaws) const;
    void add_missing_parity(Generation generation, std::set<Flaw>& flaws) const;
    std::set<Generation> with_damaged_parity() const;
    wire::Fetch errands() const;
    std::optional<wire::Rebuild> next_rebuild();
    wire::Inspect shares() const;
    const store::GenerationInfo* info_of(Generation generation) const;
    void conclude();

    Means& means_;
    Generation looked_at_;  // the newest that was in doubt
    Step step_ = Step::none;
    What what_;
    std::vector<store::GenerationInfo> all_;  // of this job, when it began
    std::optional<Asking> asking_;
    std::optional<Fetching> fetching_;
    std::optional<Rebuilding> rebuilding_;
    std::optional<Inspecting> inspecting_;
    std::set<Flaw> found_;          // at first
    std::set<Generation> rebuilt_;  // that was tried
    std::set<Generation> encoded_;  // likewise
    int encodings_ = 0;
    std::vector<std::string> troubles_;
    std::vector<Line> mended_, left_;
};

}  // namespace fermata::keeping
