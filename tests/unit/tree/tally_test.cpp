// A Tally adds what is said below it, and tallies of tallies say what one flat tally says: for every question
// of a checkpoint and a restart, random answers are added up flat and in random groups of groups.
#include "tree/tally.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>

namespace fermata::tree {
namespace {

using Random = std::mt19937;
using Messages = std::vector<wire::Message>;
constexpr uint32_t kEpoch = 7;

// A tree of tallies: leaves are ranks, and each level hands up to the next one.
class Levels {
  public:
    Levels(Random& random, int ranks) : top_(Tally::Level::top), ranks_(static_cast<uint32_t>(ranks)) {
        std::vector<int> below;  // nodes without a parent; -1 - rank: a rank
        for (int rank = 0; rank < ranks; ++rank) below.push_back(-1 - rank);
        while (below.size() > 4 || nodes_.empty()) {
            std::shuffle(below.begin(), below.end(), random);
            std::vector<int> next;
            for (size_t at = 0; at < below.size();) {
                size_t size = std::min(below.size() - at, size_t{1} + random() % 4);
                nodes_.push_back(std::make_unique<Node>());
                for (size_t i = 0; i < size; ++i) adopt(static_cast<int>(nodes_.size()) - 1, below[at + i]);
                next.push_back(static_cast<int>(nodes_.size()) - 1);
                at += size;
            }
            below = next;
            if (below.size() == 1) break;
        }
    }

    void ask(const wire::Message& question) {
        for (auto& node : nodes_) node->tally.ask(question);
        top_.ask(question);
    }
    void say(int rank, const wire::Message& answer) {
        EXPECT_TRUE(nodes_.at(static_cast<size_t>(of_rank_.at(rank)))->tally.take(rank, answer));
    }
    // Some node hands up; what it has to say goes one level higher.
    void turn(Random& random) { hand_up(random() % nodes_.size()); }
    // Until nothing is left to be said: parents come after their children.
    void settle() {
        for (size_t i = 0; i < nodes_.size(); ++i) hand_up(i);
    }
    const Tally& top() const { return top_; }
    uint32_t ranks() const { return ranks_; }

  private:
    struct Node {
        Tally tally{Tally::Level::between};
        uint32_t ranks = 0;
        int parent = -1;  // -1: the top
    };
    void adopt(int parent, int child) {
        Node& node = *nodes_[static_cast<size_t>(parent)];
        if (child < 0) {
            of_rank_[-1 - child] = parent;
            node.ranks += 1;
        } else {
            nodes_[static_cast<size_t>(child)]->parent = parent;
            node.ranks += nodes_[static_cast<size_t>(child)]->ranks;
        }
    }
    void hand_up(size_t which) {
        Node& node = *nodes_[which];
        Tally& above = node.parent < 0 ? top_ : nodes_[static_cast<size_t>(node.parent)]->tally;
        for (const wire::Message& message : node.tally.hand_up(node.ranks))
            EXPECT_TRUE(above.take(static_cast<int>(which) + 1000, message)) << wire::name_of(message);
    }
    std::vector<std::unique_ptr<Node>> nodes_;
    std::map<int, int> of_rank_;
    Tally top_;
    uint32_t ranks_;
};

std::map<int32_t, uint64_t> sizes_of(const Tally& tally) {
    std::map<int32_t, uint64_t> all;
    tally.each_size([&](int32_t rank, uint64_t bytes) { EXPECT_TRUE(all.emplace(rank, bytes).second); });
    return all;
}
std::map<int32_t, size_t> logs_of(const Tally& tally) {
    std::map<int32_t, size_t> all;
    tally.each_log(
        [&](int32_t rank, const wire::Bytes& said) { EXPECT_TRUE(all.emplace(rank, said.size()).second); });
    return all;
}
std::map<int32_t, std::pair<uint64_t, wire::Digest>> images_of(const Tally& tally) {
    std::map<int32_t, std::pair<uint64_t, wire::Digest>> all;
    tally.each_image([&](int32_t rank, const wire::ImageRecord& image) {
        EXPECT_TRUE(all.emplace(rank, std::pair(image.bytes, image.checksum)).second);
    });
    return all;
}
std::string checksum(uint64_t number) { return fmt::format("{:032x}", number); }
std::set<std::string> lines(const Tally& tally) {
    auto all = tally.answers().warnings.lines();
    return {all.begin(), all.end()};
}

void expect_same(const Tally& flat, const Tally& deep) {
    const Tally::Answers &a = flat.answers(), &b = deep.answers();
    EXPECT_EQ(a.closed, b.closed);
    EXPECT_EQ(a.frozen, b.frozen);
    EXPECT_EQ(a.drained, b.drained);
    EXPECT_EQ(a.captured, b.captured);
    EXPECT_EQ(a.resumed, b.resumed);
    EXPECT_EQ(a.restored, b.restored);
    EXPECT_EQ(a.finalized, b.finalized);
    EXPECT_EQ(a.suspend_us, b.suspend_us);
    EXPECT_EQ(a.sized, b.sized);
    EXPECT_EQ(a.saved, b.saved);
    EXPECT_EQ(a.logs, b.logs);
    EXPECT_EQ(logs_of(flat), logs_of(deep));
    EXPECT_EQ(sizes_of(flat), sizes_of(deep));
    EXPECT_EQ(images_of(flat), images_of(deep));
    EXPECT_EQ(flat.needs(), deep.needs());
    EXPECT_EQ(flat.block_times(), deep.block_times());
    EXPECT_EQ(a.refusal.empty(), b.refusal.empty());
    EXPECT_EQ(a.save_error.empty(), b.save_error.empty());
    EXPECT_EQ(a.not_restored.has_value(), b.not_restored.has_value());
    EXPECT_EQ(flat.furthest_behind(), deep.furthest_behind());
    EXPECT_EQ(lines(flat), lines(deep));
}

struct Question {
    wire::Message message;
    std::vector<std::function<wire::Message(Random&, int rank)>> answers;  // in this order from each rank
};

std::vector<Question> checkpoint() {
    auto number = [](Random& random) { return uint64_t{random() % 1000}; };
    return {
        {wire::Begin{kEpoch, Generation(3), true}, {[=](Random& random, int rank) {
             return wire::LogSaid{kEpoch, rank, wire::Bytes(random() % 5)};
         }}},
        {wire::AskLog{kEpoch, true}, {[](Random& random, int rank) {
             return wire::LogSaid{kEpoch, rank, wire::Bytes(random() % 3)};
         }}},
        {wire::Freeze{kEpoch},
         {[](Random&, int) { return wire::Closed{kEpoch}; },
          [=](Random& random, int) {
              return wire::Frozen{kEpoch, number(random)};
          },
          [](Random& random, int rank) {
              return wire::Warning{fmt::format("rank {}: line {}", rank, random() % 3), kEpoch};
          }}},
        {wire::Drain{kEpoch, 1}, {[=](Random& random, int) {
             return wire::Drained{kEpoch, 1, number(random), number(random), number(random)};
         }}},
        {wire::Drain{kEpoch, 2}, {[=](Random& random, int) {
             return wire::Drained{kEpoch, 2, number(random), number(random), number(random)};
         }}},
        {wire::Save{kEpoch, "/d", Generation(3), ""},
         {[=](Random& random, int rank) {
              return wire::Sized{kEpoch, rank, number(random)};
          },
          [](Random&, int) { return wire::Captured{kEpoch}; },
          [=](Random& random, int rank) {
              std::vector<Generation> needs;
              if (random() % 4 == 0) needs.push_back(Generation(1 + random() % 2));
              // As if there were more of them: some share a block.
              std::vector<uint64_t> took(random() % 9 ? wire::kTimedPhaseCount : 0);
              for (uint64_t& one : took) one = number(random) / 100;
              return wire::Saved{
                  kEpoch, rank,           number(random), checksum(random()),
                  "",     number(random), needs,          wire::block_of(static_cast<uint32_t>(rank), 200),
                  took};
          }}},
        {wire::Resume{kEpoch}, {[](Random&, int) { return wire::Resumed{kEpoch}; }}},
    };
}

// Every rank's answers come in its own order, ranks and levels in any order.
void play(Random& random, const Question& question, Tally& flat, Levels& levels) {
    std::vector<int> turns;
    for (size_t i = 0; i < question.answers.size(); ++i)
        for (uint32_t rank = 0; rank < levels.ranks(); ++rank) turns.push_back(static_cast<int>(rank));
    std::shuffle(turns.begin(), turns.end(), random);
    std::map<int, size_t> next;
    for (int rank : turns) {
        wire::Message answer = question.answers[next[rank]++](random, rank);
        flat.take(rank, answer);
        levels.say(rank, answer);
        if (random() % 2) levels.turn(random);
    }
    for (int i = 0; i < 3; ++i) levels.settle();
}

TEST(Tally, TalliesOfTalliesAreTheFlatOne) {
    Random random(11);
    for (int run = 0; run < 300; ++run) {
        Tally flat(Tally::Level::top);
        Levels levels(random, 1 + static_cast<int>(random() % 20));
        for (const Question& question : checkpoint()) {
            flat.ask(question.message);
            levels.ask(question.message);
            play(random, question, flat, levels);
            expect_same(flat, levels.top());
            if (HasFailure()) FAIL() << "run " << run << " at " << wire::name_of(question.message);
        }
        EXPECT_EQ(flat.answers().saved, levels.ranks());
        EXPECT_EQ(flat.answers().resumed.ranks, levels.ranks());
    }
}

TEST(Tally, WhatIsNotAskedForIsAddedUp) {
    Random random(12);
    for (int run = 0; run < 200; ++run) {
        Tally flat(Tally::Level::top);
        Levels levels(random, 1 + static_cast<int>(random() % 20));
        Question restart{wire::Go{}, {}};
        for (uint32_t phase = 1; phase <= static_cast<uint32_t>(wire::kLastRestartPhase); ++phase)
            restart.answers.push_back([phase](Random&, int rank) {
                return wire::Phase{wire::RestartPhase{phase}, rank};
            });
        restart.answers.push_back([](Random&, int) { return wire::Restored{}; });
        restart.answers.push_back([](Random&, int) { return wire::ArrivedFinalize{}; });
        // Cut off anywhere: ranks stand in different phases.
        restart.answers.resize(1 + random() % restart.answers.size());
        play(random, restart, flat, levels);
        expect_same(flat, levels.top());
        ASSERT_FALSE(HasFailure()) << run;
    }
}

// Levels may differ in which of several they take, not in whether they do.
TEST(Tally, OneRefusalOneErrorReachTheTop) {
    Random random(13);
    for (int run = 0; run < 200; ++run) {
        Levels levels(random, 5 + static_cast<int>(random() % 10));
        levels.ask(wire::Begin{kEpoch, Generation(3)});
        std::set<std::string> said;
        for (int rank = 0; rank < 5; rank += 1 + static_cast<int>(random() % 3)) {
            said.insert(fmt::format("rank {}", rank));
            if (rank % 2)
                levels.say(rank, wire::Refuse{kEpoch, fmt::format("rank {}", rank)});
            else
                levels.say(rank, wire::Again{kEpoch, fmt::format("rank {}", rank)});
            levels.turn(random);
        }
        levels.say(1, wire::Refuse{kEpoch - 1, "of an older one"});
        for (int i = 0; i < 3; ++i) levels.settle();
        const Tally::Answers& top = levels.top().answers();
        ASSERT_EQ(said.count(top.refusal), 1u) << top.refusal;
        EXPECT_EQ(top.again, (top.refusal.back() - '0') % 2 == 0);
        // A question of the same checkpoint does not take it back, the next checkpoint does.
        levels.ask(wire::Save{kEpoch, "/d", Generation(3), ""});
        EXPECT_FALSE(top.refusal.empty());
        levels.say(2, wire::Saved{kEpoch, 2, 0, "", "no space", 9, {}});
        levels.say(3, wire::Restored{false, "rank 3: no memory", 0, 6});
        for (int i = 0; i < 3; ++i) levels.settle();
        EXPECT_EQ(top.save_error, "no space");
        EXPECT_EQ(top.saved, 0u);
        ASSERT_TRUE(top.not_restored);
        EXPECT_EQ(top.not_restored->code, 6);
        levels.ask(wire::Begin{kEpoch + 1, Generation(4)});
        EXPECT_TRUE(top.refusal.empty() && top.save_error.empty() && !top.again);
        EXPECT_TRUE(top.not_restored);
    }
}

TEST(Tally, NothingGoesUpBeforeAllHaveAnswered) {
    Tally tally(Tally::Level::between);
    tally.ask(wire::Freeze{kEpoch});
    EXPECT_TRUE(tally.take(0, wire::Frozen{kEpoch, 10}));
    EXPECT_TRUE(tally.take(1, wire::Frozen{kEpoch - 1, 10}));  // late
    EXPECT_TRUE(tally.hand_up(2).empty());
    EXPECT_TRUE(tally.take(1, wire::Frozen{kEpoch, 5, 2}));
    EXPECT_TRUE(tally.hand_up(2).empty());
    auto up = tally.hand_up(3);
    ASSERT_EQ(up.size(), 1u);
    EXPECT_EQ(std::get<wire::Frozen>(up[0]).sent, 15u);
    EXPECT_EQ(std::get<wire::Frozen>(up[0]).ranks, 3u);
    EXPECT_TRUE(tally.hand_up(3).empty());
    // A round that is over counts no more.
    tally.ask(wire::Drain{kEpoch, 2});
    EXPECT_TRUE(tally.take(0, wire::Drained{kEpoch, 1, 1, 1, 1}));
    EXPECT_EQ(tally.answers().drained.ranks, 0u);
    EXPECT_FALSE(tally.take(0, wire::Hello{}));
    EXPECT_FALSE(tally.take(0, wire::Query{}));
}

// A child that has moved says all of it again elsewhere: whatever moves, the top counts every rank once.
TEST(Tally, ChildrenMoveAndNothingIsLostOrCountedTwice) {
    Random random(14);
    for (int run = 0; run < 300; ++run) {
        constexpr int kDaemons = 4, kRanks = 8;  // of each daemon
        Tally top(Tally::Level::top);
        std::vector<Tally> daemons(kDaemons, Tally(Tally::Level::between));
        std::vector<int> parent(kDaemons, -1);  // daemon 0 and 1 stay below the top, the others move
        for (size_t i = 2; i < kDaemons; ++i) parent[i] = static_cast<int>(random() % 2);
        auto all_below = [&](int which) {
            uint32_t ranks = kRanks;
            for (size_t i = 2; i < kDaemons; ++i) ranks += parent[i] == which ? kRanks : 0;
            return ranks;
        };
        auto hand_up = [&](int which) {
            auto at = static_cast<size_t>(which);
            Tally& above = parent[at] < 0 ? top : daemons[static_cast<size_t>(parent[at])];
            for (auto& message : daemons[at].hand_up(all_below(which), random() % 2))
                above.take(1000 + which, message);
        };
        wire::Message save = wire::Save{kEpoch, "/d", Generation(3), ""};
        top.ask(wire::Begin{kEpoch, {}});
        top.ask(save);
        for (Tally& daemon : daemons) daemon.ask(wire::Begin{kEpoch, {}}), daemon.ask(save);
        std::vector<int> turns;
        for (int i = 0; i < kDaemons * kRanks; ++i) turns.push_back(i);
        std::shuffle(turns.begin(), turns.end(), random);
        for (int rank : turns) {
            Tally& mine = daemons[static_cast<size_t>(rank / kRanks)];
            mine.take(rank, wire::Sized{kEpoch, rank, 7});
            mine.take(rank, wire::Saved{kEpoch, rank, 9, checksum(static_cast<uint64_t>(rank)), "", 1, {}});
            mine.take(rank, wire::Restored{});
            hand_up(static_cast<int>(random() % kDaemons));
            size_t mover = 2 + random() % 2;
            if (random() % 4 == 0) {
                daemons[static_cast<size_t>(parent[mover])].gone(1000 + static_cast<int>(mover));
                parent[mover] = 1 - parent[mover];
                daemons[mover].say_again();
            }
        }
        for (int turn = 0; turn < 3; ++turn)
            for (int i = kDaemons; i-- > 0;) {
                auto at = static_cast<size_t>(i);
                Tally& above = parent[at] < 0 ? top : daemons[static_cast<size_t>(parent[at])];
                for (auto& message : daemons[at].hand_up(all_below(i))) above.take(1000 + i, message);
            }
        EXPECT_EQ(top.answers().restored.ranks, uint32_t{kDaemons * kRanks});
        EXPECT_EQ(top.answers().saved, uint32_t{kDaemons * kRanks});
        EXPECT_EQ(sizes_of(top).size(), size_t{kDaemons * kRanks});
        EXPECT_EQ(images_of(top).size(), size_t{kDaemons * kRanks});
        // The ranks of a daemon that is dead count no more, and those that moved away from it do.
        top.gone(1000);
        EXPECT_EQ(top.answers().saved, kDaemons * kRanks - all_below(0));
        ASSERT_FALSE(HasFailure()) << run;
    }
}

TEST(Tally, PartsWaitForTheirTime) {
    Tally tally(Tally::Level::between);
    tally.take(0, wire::ArrivedFinalize{});
    EXPECT_TRUE(tally.hand_up(3, false).empty());
    EXPECT_TRUE(tally.parts_wait());
    EXPECT_EQ(tally.hand_up(3, true).size(), 1u);
    EXPECT_FALSE(tally.parts_wait());
    tally.take(1, wire::ArrivedFinalize{});
    tally.take(2, wire::ArrivedFinalize{});
    auto up = tally.hand_up(3, false);  // complete
    ASSERT_EQ(up.size(), 1u);
    EXPECT_EQ(std::get<wire::ArrivedFinalize>(up[0]).ranks, 3u);
    tally.gone(1);
    up = tally.hand_up(2, true);
    ASSERT_EQ(up.size(), 1u);
    EXPECT_EQ(std::get<wire::ArrivedFinalize>(up[0]).ranks, 2u);
}

}  // namespace
}  // namespace fermata::tree
