// The table of the agent's stages: each pair is handled or named impossible; the ways through a checkpoint;
// Cancel and the loss of the daemon in each stage; and the meeting rule, against a fake wire.
#include "lower/agent_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace fermata::lower {
namespace {

std::vector<Stage> all_stages() {
    std::vector<Stage> stages;
    for (int i = 0; i < kStages; ++i) stages.push_back(static_cast<Stage>(i));
    return stages;
}

std::vector<Event> all_events() {
    std::vector<Event> events;
    for (int i = 0; i < kEvents; ++i) events.push_back(static_cast<Event>(i));
    return events;
}

std::string pair_of(Stage stage, Event event) {
    return std::string(word_of(event)) + " while " + facts_of(stage).word;
}

// The stage after these events, and the actions on the way.
struct Way {
    Stage stage;
    std::vector<Action> actions;
};
Way walk(Stage from, const std::vector<Event>& events) {
    Way way{from, {}};
    for (Event event : events) {
        auto row = step(way.stage, event);
        if (!row) {
            ADD_FAILURE() << pair_of(way.stage, event) << ": " << why_never(way.stage, event);
            return way;
        }
        way.stage = row->next;
        way.actions.push_back(row->action);
    }
    return way;
}

using Events = std::vector<Event>;
using Actions = std::vector<Action>;
const Events kToDraining{Event::begin, Event::ready, Event::clock, Event::freeze,
                         Event::calm,  Event::stand, Event::drain};

Events operator+(Events a, const Events& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

TEST(AgentStages, EveryPairIsHandledOrNamedImpossible) {
    for (Stage stage : all_stages())
        for (Event event : all_events()) {
            const char* why = why_never(stage, event);
            if (step(stage, event)) {
                EXPECT_EQ(why, nullptr) << pair_of(stage, event);
            } else {
                ASSERT_NE(why, nullptr) << pair_of(stage, event);
                EXPECT_STRNE(why, "") << pair_of(stage, event);
            }
        }
}

TEST(AgentStages, EveryStageIsReachedAndWordsDiffer) {
    std::set<Stage> reached{Stage::restoring, Stage::running};
    for (size_t before = 0; before != reached.size();) {
        before = reached.size();
        for (Stage stage : std::set<Stage>(reached))
            for (Event event : all_events())
                if (auto row = step(stage, event)) reached.insert(row->next);
    }
    EXPECT_EQ(reached.size(), size_t{kStages});
    std::set<std::string> words;
    for (Stage stage : all_stages()) words.insert(facts_of(stage).word);
    for (Event event : all_events()) words.insert(word_of(event));
    EXPECT_EQ(words.size(), size_t{kStages + kEvents});
}

TEST(AgentStages, ACheckpointThatThisProcessWrites) {
    Way way = walk(Stage::running,
                   kToDraining + Events{Event::drain, Event::save, Event::met, Event::ended, Event::resume});
    EXPECT_EQ(way.stage, Stage::running);
    EXPECT_EQ(way.actions, (Actions{Action::note_begin, Action::begin, Action::hear_clock, Action::close,
                                    Action::ask_to_stop, Action::say_frozen, Action::drain, Action::drain,
                                    Action::meet, Action::capture, Action::conclude, Action::go_on}));
}

TEST(AgentStages, ACheckpointThatAChildWrites) {
    Events captured = kToDraining + Events{Event::save, Event::met, Event::child_writes};
    // The program goes on first, and Resume may be said twice.
    Way way = walk(Stage::running, captured + Events{Event::resume, Event::resume, Event::ended});
    EXPECT_EQ(way.stage, Stage::running);
    EXPECT_EQ(way.actions.back(), Action::conclude);
    EXPECT_EQ(way.actions[way.actions.size() - 3], Action::go_on_writing);
    // The child is faster than the other ranks.
    EXPECT_EQ(walk(Stage::running, captured + Events{Event::ended, Event::resume, Event::resume}).stage,
              Stage::running);
}

TEST(AgentStages, ACheckpointInOneFileOfAllRanks) {
    Events sized = kToDraining + Events{Event::save, Event::met, Event::sized};
    EXPECT_EQ(walk(Stage::running, sized).stage, Stage::placing);
    EXPECT_EQ(walk(Stage::running, sized + Events{Event::placed, Event::child_writes}).stage, Stage::writing);
    EXPECT_EQ(walk(Stage::running, sized + Events{Event::placed, Event::ended}).stage, Stage::written);
}

TEST(AgentStages, ARenewalOfRanksThatKeepALog) {
    const Events frozen{Event::begin, Event::at_once, Event::calm, Event::stand};
    Way way =
        walk(Stage::running, frozen + Events{Event::orders, Event::save, Event::child_writes, Event::ended});
    EXPECT_EQ(way.stage, Stage::written);
    EXPECT_EQ(way.actions,
              (Actions{Action::note_begin, Action::begin_at_once, Action::ask_to_stop, Action::say_frozen,
                       Action::keep_orders, Action::hop, Action::nothing, Action::conclude}));
    // They meet nobody: whatever comes, they go on by themselves.
    EXPECT_EQ(walk(Stage::running, frozen + Events{Event::orders, Event::cancel}).stage, Stage::running);
    EXPECT_EQ(walk(Stage::running, frozen + Events{Event::cancel}).stage, Stage::running);
    EXPECT_EQ(walk(Stage::running, frozen + Events{Event::orders, Event::daemon_lost}).actions.back(),
              Action::go_on_alone);
}

TEST(AgentStages, ACheckpointOfRanksThatKeepALog) {
    const Events frozen{Event::begin, Event::at_once, Event::calm, Event::stand, Event::ask_log};
    Way way = walk(Stage::running, frozen + Events{Event::save, Event::ended, Event::resume});
    EXPECT_EQ(way.stage, Stage::running);
    EXPECT_EQ(way.actions,
              (Actions{Action::note_begin, Action::begin_at_once, Action::ask_to_stop, Action::say_frozen,
                       Action::say_log, Action::save_alone, Action::conclude, Action::go_on}));
    way =
        walk(Stage::running, frozen + Events{Event::save, Event::child_writes, Event::resume, Event::ended});
    EXPECT_EQ(way.stage, Stage::running);
    EXPECT_EQ(way.actions[way.actions.size() - 2], Action::go_on_writing);
    EXPECT_EQ(walk(Stage::running, frozen + Events{Event::cancel}).stage, Stage::running);
    EXPECT_EQ(walk(Stage::running, frozen + Events{Event::save, Event::sized}).stage, Stage::placing);
}

TEST(AgentStages, ARestartOfRanksThatKeepALog) {
    Way way = walk(Stage::restoring, {Event::logs_first, Event::ask_log, Event::orders, Event::go});
    EXPECT_EQ(way.stage, Stage::running);
    EXPECT_EQ(way.actions, (Actions{Action::await_logs, Action::say_log, Action::rebuild, Action::go}));
    for (const Events& before : {Events{Event::logs_first}, Events{Event::logs_first, Event::ask_log}}) {
        EXPECT_EQ(walk(Stage::restoring, before + Events{Event::leave}).actions.back(),
                  Action::end_with_launcher);
        EXPECT_EQ(walk(Stage::restoring, before + Events{Event::daemon_lost}).actions.back(),
                  Action::end_before_go);
    }
}

TEST(AgentStages, TheLastCheckpointOfAJob) {
    Way way = walk(Stage::running, kToDraining + Events{Event::save, Event::met, Event::ended, Event::leave,
                                                        Event::daemon_lost});
    EXPECT_EQ(way.actions[way.actions.size() - 2], Action::leave);
    EXPECT_EQ(way.actions.back(), Action::end_left);  // the program must not go on
}

TEST(AgentStages, ARestart) {
    Way way = walk(Stage::restoring, {Event::restored, Event::go, Event::begin});
    EXPECT_EQ(way.actions, (Actions{Action::rebuild, Action::go, Action::note_begin}));
    EXPECT_EQ(walk(Stage::restoring, {Event::daemon_lost}).actions.back(), Action::end_before_go);
    EXPECT_EQ(walk(Stage::restoring, {Event::restored, Event::daemon_lost}).actions.back(),
              Action::end_before_go);
}

TEST(AgentStages, ARestartThatIsRefused) {
    for (const Events& before : {Events{}, Events{Event::restored}}) {
        Events events = before;
        events.push_back(Event::leave);
        EXPECT_EQ(walk(Stage::restoring, events).actions.back(), Action::end_with_launcher);
    }
}

TEST(AgentStages, AnEarlyCheckpointWaits) {
    // The clock's root does not wait for it.
    Way way = walk(Stage::running, {Event::begin, Event::clock, Event::clock, Event::ready, Event::clock});
    EXPECT_EQ(way.stage, Stage::converging);
    EXPECT_EQ(way.actions, (Actions{Action::note_begin, Action::keep_clock, Action::keep_clock, Action::begin,
                                    Action::hear_clock}));
    EXPECT_EQ(
        walk(Stage::running, {Event::begin, Event::clock, Event::refused, Event::clock, Event::cancel})
            .actions,
        (Actions{Action::note_begin, Action::keep_clock, Action::refuse, Action::nothing, Action::answer}));
    EXPECT_EQ(walk(Stage::running, {Event::begin, Event::cancel, Event::begin, Event::ready}).stage,
              Stage::converging);
    EXPECT_EQ(walk(Stage::running, {Event::begin, Event::daemon_lost}).stage, Stage::alone);
}

TEST(AgentStages, TheNextCheckpointWaitsForTheMeeting) {
    Events given_up = kToDraining + Events{Event::save, Event::cancel, Event::begin, Event::clock};
    Way way = walk(Stage::running, given_up + Events{Event::met, Event::ready});
    EXPECT_EQ(way.stage, Stage::converging);
    EXPECT_EQ(way.actions[way.actions.size() - 3], Action::keep_clock);
    EXPECT_EQ(way.actions[way.actions.size() - 2], Action::help_and_go_on);
    EXPECT_EQ(walk(Stage::running, given_up + Events{Event::away, Event::ready}).stage, Stage::converging);
    EXPECT_EQ(walk(Stage::running, given_up + Events{Event::cancel, Event::met}).stage, Stage::running);
    EXPECT_EQ(walk(Stage::running, given_up + Events{Event::cancel, Event::begin, Event::met}).stage,
              Stage::asked);
}

// What becomes of a rank that is told Cancel, in each stage.
TEST(AgentStages, CancelInEachStage) {
    for (Stage stage : all_stages()) {
        auto row = step(stage, Event::cancel);
        switch (stage) {
            case Stage::running:
                EXPECT_EQ(row->action, Action::answer);
                break;
            case Stage::asked:
                EXPECT_EQ(row->action, Action::forget_begin_and_answer);
                break;
            case Stage::meeting:
            case Stage::given_up:
            case Stage::given_up_asked:
                EXPECT_EQ(row->next, Stage::given_up);  // the answer comes when the meeting is over
                EXPECT_EQ(step(Stage::given_up, Event::met)->action, Action::help_and_go_on);
                EXPECT_EQ(step(Stage::given_up, Event::away)->action, Action::go_on);
                continue;
            case Stage::behind:
                EXPECT_EQ(row->action, Action::drop_image);
                break;
            case Stage::restoring:
            case Stage::telling:
            case Stage::rebuilt:
            case Stage::capturing:
            case Stage::leaving:
            case Stage::meeting_alone:
            case Stage::alone:
                EXPECT_FALSE(row) << facts_of(stage).word;
                continue;
            default:
                EXPECT_EQ(row->action, Action::go_on) << facts_of(stage).word;
        }
        EXPECT_EQ(row->next, Stage::running) << facts_of(stage).word;
    }
}

TEST(AgentStages, LossOfTheDaemonInEachStage) {
    for (Stage stage : all_stages()) {
        auto row = step(stage, Event::daemon_lost);
        switch (stage) {
            case Stage::restoring:
            case Stage::telling:
            case Stage::rebuilt:
                EXPECT_EQ(row->action, Action::end_before_go);
                break;
            case Stage::leaving:
                EXPECT_EQ(row->action, Action::end_left);
                break;
            case Stage::meeting:
            case Stage::given_up:
            case Stage::given_up_asked:
                EXPECT_EQ(row->next, Stage::meeting_alone);
                EXPECT_EQ(step(Stage::meeting_alone, Event::met)->action, Action::help_and_go_on_alone);
                EXPECT_EQ(step(Stage::meeting_alone, Event::away)->action, Action::go_on_alone);
                break;
            case Stage::draining:
                EXPECT_EQ(row->action, Action::stay_away_and_go_on_alone);
                EXPECT_EQ(row->next, Stage::alone);
                break;
            case Stage::running:
            case Stage::asked:
            case Stage::behind:
                EXPECT_EQ(row->action, Action::stay_alone);
                EXPECT_EQ(row->next, Stage::alone);
                break;
            case Stage::capturing:
            case Stage::meeting_alone:
            case Stage::alone:
                EXPECT_FALSE(row) << facts_of(stage).word;
                break;
            default:
                EXPECT_EQ(row->action, Action::go_on_alone) << facts_of(stage).word;
                EXPECT_EQ(row->next, Stage::alone) << facts_of(stage).word;
        }
    }
    // Nothing brings a rank back into a checkpoint.
    for (Event event : all_events()) {
        EXPECT_FALSE(step(Stage::alone, event));
        if (auto row = step(Stage::meeting_alone, event)) {
            EXPECT_EQ(row->next, Stage::alone);
        }
    }
}

// Threads run in some stages and stand in others: who comes from one to the other does so by an action that
// stops or releases them.
TEST(AgentStages, ThreadsStandFromStoppingUntilTheyAreLetGo) {
    auto stands = [](Stage stage) {
        return stage >= Stage::frozen && stage != Stage::behind && stage != Stage::alone;
    };
    const std::set<Action> letting_go{
        Action::go_on,       Action::go_on_writing,        Action::help_and_go_on,
        Action::go_on_alone, Action::help_and_go_on_alone, Action::stay_away_and_go_on_alone};
    for (Stage stage : all_stages())
        for (Event event : all_events())
            if (auto row = step(stage, event)) {
                if (stands(stage) && !stands(row->next)) {
                    EXPECT_TRUE(letting_go.count(row->action)) << pair_of(stage, event);
                }
                if (!stands(stage) && stands(row->next)) {
                    EXPECT_EQ(row->action, Action::say_frozen) << pair_of(stage, event);
                }
            }
}

// ---- the meeting rule, against a fake wire

// Ranks that have drained, a root that says Save to all, daemons that die and a root that gives up at any
// moment: all interleavings. What ranks do together after the meeting returns when all of them do it.
class FakeJob {
  public:
    using Table = std::function<std::optional<Step>(Stage, Event)>;
    FakeJob(Table table, int ranks, bool next) : table_(std::move(table)), ranks_(ranks), next_(next) {}

    // Empty, or what went wrong in some interleaving.
    std::string explore() {
        State start;
        start.ranks.assign(static_cast<size_t>(ranks_), Rank{});
        visit(start);
        while (!todo_.empty() && wrong_.empty()) {
            State state = todo_.front();
            todo_.pop_front();
            if (!moves(state) && !at_rest(state)) wrong_ = "somebody stands for ever: " + text(state);
        }
        return wrong_;
    }
    size_t states() const { return seen_.size(); }
    bool all_saved() const { return all_saved_; }

  private:
    struct Rank {
        Stage stage = Stage::draining;
        std::vector<Event> queue{Event::save};  // from the root, not yet heard
        bool daemon = true;
        int vote = 0;           // in the meeting: 1 no, 2 yes
        bool together = false;  // in what ranks do together before they save
        bool captures = false;  // ... and saves after it
    };
    struct State {
        std::vector<Rank> ranks;
        bool given_up = false;
        bool resumed = false;
    };

    static std::string text(const State& state) {
        std::string all = state.given_up ? "given up" : state.resumed ? "resumed" : "saving";
        for (const Rank& rank : state.ranks) {
            all += std::string("; ") + facts_of(rank.stage).word + (rank.daemon ? "" : " (no daemon)") +
                   (rank.together ? " together" : "") + (rank.captures ? " captures" : "") + " vote " +
                   std::to_string(rank.vote);
            for (Event event : rank.queue) all += std::string(" ") + word_of(event);
        }
        return all;
    }

    void visit(const State& state) {
        if (seen_.insert(text(state)).second) todo_.push_back(state);
    }

    void event(State& state, size_t who, Event event) {
        Rank& rank = state.ranks[who];
        auto row = table_(rank.stage, event);
        if (!row) {
            wrong_ = std::string(word_of(event)) + " cannot be, and came: " + text(state);
            return;
        }
        rank.stage = row->next;
        switch (row->action) {
            case Action::meet:
                rank.vote = 2;
                break;
            case Action::stay_away_and_go_on_alone:
                rank.vote = 1;
                break;
            case Action::capture:
                rank.together = rank.captures = true;
                break;
            case Action::help_and_go_on:
            case Action::help_and_go_on_alone:
                rank.together = true;
                break;
            default:
                break;
        }
    }

    // Every move that is possible; false: none is.
    bool moves(const State& state) {
        bool any = false;
        auto move = [&](const std::function<void(State&)>& what) {
            State next = state;
            what(next);
            any = true;
            visit(next);
        };
        auto all = [&](auto&& is) { return std::all_of(state.ranks.begin(), state.ranks.end(), is); };
        const bool voted = all([](const Rank& rank) { return rank.vote != 0; });
        const bool agreed = all([](const Rank& rank) { return rank.vote == 2; });
        if (all([](const Rank& rank) { return rank.together; }))
            move([&](State& next) {
                for (size_t i = 0; i < next.ranks.size(); ++i) {
                    next.ranks[i].together = false;
                    if (std::exchange(next.ranks[i].captures, false)) event(next, i, Event::ended);
                }
            });
        for (size_t i = 0; i < state.ranks.size(); ++i) {
            const Rank& rank = state.ranks[i];
            if (rank.daemon)  // dies, and what it has not handed on with it
                move([&](State& next) {
                    next.ranks[i].daemon = false;
                    next.ranks[i].queue = {Event::daemon_lost};
                });
            if (rank.together) continue;
            if (!rank.queue.empty())
                move([&](State& next) {
                    Event first = rank.queue.front();
                    next.ranks[i].queue.erase(next.ranks[i].queue.begin());
                    event(next, i, first);
                });
            if (voted && (rank.stage == Stage::meeting || rank.stage == Stage::given_up ||
                          rank.stage == Stage::given_up_asked || rank.stage == Stage::meeting_alone))
                move([&](State& next) { event(next, i, agreed ? Event::met : Event::away); });
        }
        auto tell = [&](State& next, std::initializer_list<Event> events) {
            for (Rank& rank : next.ranks)
                if (rank.daemon) rank.queue.insert(rank.queue.end(), events);
        };
        const bool saved = all([](const Rank& rank) { return rank.stage == Stage::written; });
        all_saved_ |= saved;
        if (!state.given_up && !state.resumed) {
            move([&](State& next) {
                next.given_up = true;
                if (next_)
                    tell(next, {Event::cancel, Event::begin});
                else
                    tell(next, {Event::cancel});
            });
            if (saved)
                move([&](State& next) {
                    next.resumed = true;
                    tell(next, {Event::resume});
                });
        }
        return any;
    }

    // Nobody stands: all programs run, some without a daemon, or wait for the next checkpoint to begin.
    static bool at_rest(const State& state) {
        return std::all_of(state.ranks.begin(), state.ranks.end(), [](const Rank& rank) {
            return !rank.together && rank.queue.empty() &&
                   (rank.stage == Stage::running || rank.stage == Stage::alone || rank.stage == Stage::asked);
        });
    }

    Table table_;
    int ranks_;
    bool next_;  // the root begins the next checkpoint without waiting for this one's end
    std::set<std::string> seen_;
    std::deque<State> todo_;
    std::string wrong_;
    bool all_saved_ = false;
};

TEST(Meeting, NobodyStandsForEver) {
    for (int ranks : {1, 2, 3})
        for (bool next : {false, true}) {
            FakeJob job(step, ranks, next);
            EXPECT_EQ(job.explore(), "") << ranks << " ranks";
            EXPECT_TRUE(job.all_saved());
            EXPECT_GT(job.states(), 10u);
        }
}

// The exploration notices each rule that is broken.
TEST(Meeting, EachRuleIsNeeded) {
    auto with = [](Stage stage, Event event, Step other) {
        return [=](Stage s, Event e) -> std::optional<Step> {
            if (s == stage && e == event) return other;
            return step(s, e);
        };
    };
    auto wrong = [](FakeJob::Table table) { return FakeJob(std::move(table), 2, true).explore(); };
    // Who has lost its daemon says no, instead of nothing.
    EXPECT_NE(wrong(with(Stage::draining, Event::daemon_lost, {Action::go_on_alone, Stage::alone})), "");
    // Who has heard Cancel in the meeting stays in it, and does its part.
    EXPECT_NE(wrong(with(Stage::meeting, Event::cancel, {Action::go_on, Stage::running})), "");
    EXPECT_NE(wrong(with(Stage::given_up, Event::met, {Action::go_on, Stage::running})), "");
    EXPECT_NE(wrong(with(Stage::given_up_asked, Event::met, {Action::go_on, Stage::asked})), "");
    // So does who has lost its daemon in it.
    EXPECT_NE(wrong(with(Stage::meeting, Event::daemon_lost, {Action::go_on_alone, Stage::alone})), "");
    EXPECT_NE(wrong(with(Stage::meeting_alone, Event::met, {Action::go_on_alone, Stage::alone})), "");
    // Where some rank stays away, nobody saves.
    EXPECT_NE(wrong(with(Stage::meeting, Event::away, {Action::capture, Stage::capturing})), "");
}

}  // namespace
}  // namespace fermata::lower
