// Mending has every copy of a running job's generations looked at by the node daemons, and what is damaged or
// missing taken from another copy or rebuilt from parity. It sends by a function, waits for nothing, and is
// asked again when something has been heard.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "keeping/account/settings.h"
#include "keeping/orders/asking.h"
#include "keeping/orders/fetching.h"
#include "keeping/orders/inspecting.h"
#include "keeping/orders/rebuilding.h"
#include "store/store.h"
#include "tree/tree.h"

namespace fermata::keeping {

class Mending {
  public:
    using Send = std::function<void(const wire::Message&)>;
    // `rounds`: how often nodes were told something with a number, in this life of the job.
    Mending(const Settings& settings, const store::Store& store, const tree::Tree& tree, Send send,
            uint32_t& rounds)
        : settings_(settings), store_(store), tree_(tree), send_(std::move(send)), rounds_(rounds) {}

    // What the root knows of generations in memory.
    struct What {
        int client = -1;  // who has asked for it; -1: nobody
        Generation only;  // and for what that needs; none: for all
        std::vector<Generation> in_memory;
        std::set<Generation> twice;                  // whose images are to be in the memory of two nodes
        std::set<Generation> with_parity;            // all nodes of a group are to have theirs
        std::map<std::string, std::string> buddies;  // by node
    };
    void start(What what);
    bool under_way() const { return step_ != Step::none; }
    bool is_asked_for() const { return what_.client >= 0; }
    // Once: to whom the report goes; -1: to nobody, or it is not over.
    int take_client() { return under_way() ? -1 : std::exchange(what_.client, -1); }
    // Generations that must not go meanwhile.
    std::vector<Generation> in_use() const {
        return under_way() ? what_.in_memory : std::vector<Generation>();
    }
    // False: it is none of these messages.
    bool heard(const wire::Message& message);
    // Does what can be done now; nothing else is under way that nodes are told to fetch, encode or rebuild.
    // True: it is over, since this call.
    bool go_on();
    void say_again();
    // Once: whose parity is to be made anew before the next go_on(); their images are intact.
    std::vector<Generation> take_to_encode() { return std::exchange(to_encode_, {}); }

    // A line on something, of a generation.
    struct Line {
        Generation generation;
        std::string text;
    };
    // Once it is over.
    const std::vector<Line>& mended() const { return mended_; }
    const std::vector<Line>& left() const { return left_; }

  private:
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

    const Settings& settings_;
    const store::Store& store_;
    const tree::Tree& tree_;
    const Send send_;
    uint32_t& rounds_;
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
    std::vector<Generation> to_encode_;
    std::vector<std::string> troubles_;
    std::vector<Line> mended_, left_;
};

}  // namespace fermata::keeping
