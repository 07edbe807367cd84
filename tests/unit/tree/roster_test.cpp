// Ranks is a set, whatever is done to it; Roster takes what fits together, and refuses the rest in one line.
#include "tree/roster.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tree/joined.h"

namespace fermata::tree {
namespace {

using Random = std::mt19937;

std::set<int32_t> members(const Ranks& ranks) {
    std::set<int32_t> all;
    ranks.each([&](int32_t rank) { all.insert(rank); });
    return all;
}

TEST(Ranks, AreASet) {
    Random random(3);
    for (int run = 0; run < 300; ++run) {
        Ranks ranks;
        std::set<int32_t> plain;
        for (int step = 0; step < 30; ++step) {
            Ranks some;
            std::set<int32_t> those;
            for (uint32_t i = random() % 4; i-- > 0;) {
                auto first = static_cast<int32_t>(random() % 40);
                auto count = static_cast<uint32_t>(1 + random() % 5);
                some.add(*Ranks::of({{first, count}}));
                for (uint32_t j = 0; j < count; ++j) those.insert(first + static_cast<int32_t>(j));
            }
            ASSERT_EQ(members(some), those);
            std::set<int32_t> both;
            for (int32_t rank : those)
                if (plain.count(rank)) both.insert(rank);
            EXPECT_EQ(ranks.common(some).has_value(), !both.empty());
            EXPECT_TRUE(both.empty() || both.count(*ranks.common(some)));
            if (random() % 2) {
                ranks.add(some);
                plain.insert(those.begin(), those.end());
            } else {
                ranks.take_away(some);
                for (int32_t rank : those) plain.erase(rank);
            }
            ASSERT_EQ(members(ranks), plain);
            EXPECT_EQ(ranks.count(), plain.size());
            EXPECT_EQ(Ranks::of(ranks.runs()), ranks);
            auto rank = static_cast<int32_t>(random() % 50);
            EXPECT_EQ(ranks.contains(rank), plain.count(rank) == 1);
            EXPECT_EQ(ranks.place_of(rank),
                      static_cast<size_t>(std::distance(plain.begin(), plain.lower_bound(rank))));
        }
    }
}

TEST(Ranks, FromOutsideOnlyWhatIsOne) {
    EXPECT_TRUE(Ranks::of({}));
    EXPECT_EQ(Ranks::of({{0, 2}, {2, 3}})->runs().size(), 1u);
    EXPECT_FALSE(Ranks::of({{-1, 2}}));
    EXPECT_FALSE(Ranks::of({{3, 0}}));
    EXPECT_FALSE(Ranks::of({{3, 2}, {4, 1}}));
    EXPECT_FALSE(Ranks::of({{5, 1}, {3, 1}}));
    EXPECT_FALSE(Ranks::of({{1, UINT32_MAX}}));
    EXPECT_FALSE(Ranks::of({{INT32_MAX, 1}}));
    EXPECT_TRUE(Ranks::of({{kMostRanks - 1, 1}}));
    EXPECT_EQ(Ranks::of({{3, 1}, {7, 3}})->text(200), "3, 7-9");
}

wire::Group group(int32_t rank, int32_t size, uint32_t count = 1) {
    wire::Group made;
    made.size = size;
    made.host = "node17";
    made.ranks = {{rank, count}};
    made.pids.assign(count, 100 + rank);
    return made;
}

TEST(Roster, RefusesWhatDoesNotFitInOneLine) {
    Roster roster;
    for (int32_t size : {0, -1, kMostRanks + 1, INT32_MAX})
        EXPECT_NE(roster.join(0, group(0, size)).find("does not fit"), std::string::npos) << size;
    EXPECT_EQ(roster.size(), 0);
    EXPECT_EQ(roster.join(0, group(1, 4)), "");
    EXPECT_EQ(roster.join(1, group(1, 4)),
              "rank 1 of 4 on node17 does not fit a job of 4 ranks: does the program match this mpiexec?");
    EXPECT_NE(roster.join(0, group(1, 4)), "");
    EXPECT_NE(roster.join(1, group(2, 5)), "");
    EXPECT_NE(roster.join(1, group(4, 4)), "");
    EXPECT_NE(roster.join(1, group(-1, 4)), "");
    EXPECT_NE(roster.join(1, group(2, 4, 3)), "");
    wire::Group without = group(2, 4);
    without.pids.clear();
    EXPECT_NE(roster.join(1, without), "");
    EXPECT_EQ(roster.missing(200), "0, 2-3");
    EXPECT_EQ(roster.join(1, group(2, 4)), "");
    EXPECT_TRUE(roster.leave(0, Ranks(2)).empty());
    EXPECT_EQ(roster.here(), 2);
    EXPECT_EQ(roster.lose(1), 1u);
    EXPECT_EQ(roster.missing(200), "0, 2-3");
    EXPECT_FALSE(roster.complete());
}

// A daemon that answers a call of the roll says again who is there: nobody is counted twice.
TEST(Roster, TakesWhatIsSaidAgain) {
    Roster roster;
    EXPECT_EQ(roster.join(0, group(0, 6, 3)), "");
    wire::Group again = group(0, 6, 4);
    again.pids = {100, 100, 100, 7};
    EXPECT_EQ(roster.lose(0), 3u);
    EXPECT_EQ(roster.join(0, again), "");
    EXPECT_EQ(roster.here(), 4);
    EXPECT_EQ(roster.places().at(0).pids, (std::vector<int32_t>{100, 100, 100, 7}));
    EXPECT_NE(roster.join(1, again), "");  // of another node's
    EXPECT_EQ(roster.leave(0, *Ranks::of({{1, 2}, {5, 1}})).count(), 2u);
    EXPECT_EQ(roster.places().at(0).pids, (std::vector<int32_t>{100, 7}));
    EXPECT_EQ(roster.missing(200), "1-2, 4-5");
}

// Its copy on another node plays it: it leaves the one and joins the other.
TEST(Roster, ARankGoesToAnotherNode) {
    Roster roster;
    auto group = [](std::vector<wire::Run> ranks, std::vector<int32_t> pids) {
        return wire::Group{-1, "h", 3, "mpich", "", {}, std::move(ranks), std::move(pids)};
    };
    EXPECT_EQ(roster.join(1, group({{0, 2}}, {10, 11})), "");
    EXPECT_EQ(roster.join(2, group({{2, 1}}, {12})), "");
    EXPECT_EQ(roster.node_of(1), 1);
    EXPECT_NE(roster.join(2, group({{1, 1}}, {21})), "") << "it is on the first one still";
    roster.leave(1, Ranks(1));
    EXPECT_EQ(roster.node_of(1), -1);
    EXPECT_FALSE(roster.complete());
    EXPECT_EQ(roster.join(2, group({{1, 1}}, {21})), "");
    EXPECT_EQ(roster.node_of(1), 2);
    EXPECT_EQ(members(roster.ranks_at(2)), (std::set<int32_t>{1, 2}));
    EXPECT_EQ(roster.places().at(2).pids, (std::vector<int32_t>{21, 12}));
    EXPECT_TRUE(roster.complete());
}

TEST(Joined, RanksThatSayTheSameAreOneGroup) {
    auto hello = [](int32_t rank, int32_t size, const char* mpi = "openmpi") {
        return wire::Hello{"id", rank, size, 100 + rank, "node17", mpi, "1", {}};
    };
    wire::Joined all = joined({hello(3, 8), hello(1, 8), hello(0, 8), hello(2, 8, "mpich"), hello(1, 8)});
    ASSERT_EQ(all.groups.size(), 3u);
    EXPECT_EQ(all.groups[0].mpi, "mpich");
    EXPECT_EQ(all.groups[1].ranks, (std::vector<wire::Run>{{0, 2}}));
    EXPECT_EQ(all.groups[2].ranks, (std::vector<wire::Run>{{1, 1}, {3, 1}}));  // rank 1 came twice
    EXPECT_EQ(all.groups[2].pids, (std::vector<int32_t>{101, 103}));
}

}  // namespace
}  // namespace fermata::tree
