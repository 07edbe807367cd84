// The launcher own while its ranks run: one goes to another node, and the daemon of a node is lost. The
// daemons are none.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "launch/own/own.h"

namespace fermata::launch::own {
namespace {

class NoDaemons : public Daemons {
  public:
    void send(int via, const wire::Message& message) override { sent.emplace_back(via, message); }
    void broadcast(const wire::Message& message) override { told.push_back(message); }
    void expect(int, size_t) override {}
    size_t width() const override { return 64; }
    void rank_died(const std::string& line) override { deaths.push_back(line); }

    std::vector<std::pair<int, wire::Message>> sent;
    std::vector<wire::Message> told;
    std::vector<std::string> deaths;
};

// Two ranks on each of two nodes, whose daemons are numbers 7 and 8 of the tree.
class OwnMoves : public testing::Test {
  protected:
    void SetUp() override {
        ::setenv("FERMATA_SSH", "/bin/true", 1);
        LaunchPlan plan;
        plan.ranks = 4;
        plan.mpiexec_args = "--hosts fermata-x:2,fermata-y:2";
        plan.program = {"program"};
        plan.library.mpi = "mpich";
        plan.library.lower = "/lower";
        plan.environment = {{"FERMATA_JOB_ID", "7"}, {"FERMATA_NODED", "/noded"}};
        plan.no_input = true;
        own.emplace(plan, std::nullopt);
        own->reach(daemons);
        own->start();
        own->heard(wire::Ready{0, "x", 2, 7});
        own->heard(wire::Ready{1, "y", 2, 8});
        ASSERT_FALSE(daemons.told.empty());
        ASSERT_TRUE(std::holds_alternative<wire::Launch>(daemons.told.back()));
    }
    void TearDown() override { ::unsetenv("FERMATA_SSH"); }
    // Where a question for this rank goes.
    int asked_of(uint32_t rank) {
        daemons.sent.clear();
        own->heard(wire::AskRank{0, 0, 1, rank});
        return daemons.sent.empty() ? -1 : daemons.sent.back().first;
    }
    static int home(int32_t rank) { return rank < 2 ? 7 : 8; }
    static wire::RankEnded killed(int32_t rank) {
        return {rank, 10, "x", SIGKILL, wire::RankEnd::running, home(rank)};
    }
    // The end of a process whose library has aborted.
    static wire::RankEnded left(int32_t rank) {
        return {rank, 10, "x", 14 << 8, wire::RankEnd::running, home(rank)};
    }
    static wire::RankEnded well(int32_t rank) {
        return {rank, 10, "x", 0, wire::RankEnd::finalized, home(rank)};
    }
    static wire::RankEnded ended(int32_t rank) { return {rank, 10, "x", 0, wire::RankEnd::finalized, 7}; }

    NoDaemons daemons;
    std::optional<Own> own;
};

TEST_F(OwnMoves, TheNextWorldIsOfTheNewPlaces) {
    EXPECT_TRUE(own->renew(1).blocks.empty()) << "those of the launch";
    own->rank_moved(Rank(2), 7);
    const auto blocks = own->renew(2).blocks;
    ASSERT_EQ(blocks.size(), 2u);
    EXPECT_EQ(blocks[0].first_node, 0u);
    EXPECT_EQ(blocks[0].ranks_per_node, 3u);
    EXPECT_EQ(blocks[1].first_node, 1u);
    EXPECT_EQ(asked_of(2), 7);
    EXPECT_EQ(asked_of(3), 8);
    own->rank_moved(Rank(3), 7);
    EXPECT_EQ(own->renew(3).blocks.size(), 1u);
    EXPECT_EQ(asked_of(3), 7);
    EXPECT_THROW(own->rank_moved(Rank(0), 9), std::exception);
}

TEST_F(OwnMoves, ANodeThatNobodyIsLeftOnIsNotMissed) {
    own->rank_moved(Rank(2), 7);
    own->rank_moved(Rank(3), 7);
    own->lost(8);
    EXPECT_TRUE(daemons.deaths.empty());
    for (int32_t rank : {0, 1, 2}) own->heard(ended(rank));
    EXPECT_FALSE(own->ended()) << "one runs still, where it was not launched";
    own->heard(ended(3));
    EXPECT_EQ(own->ended(), 0);
}

TEST_F(OwnMoves, ANodeWithARankThatHasNotMovedIs) {
    own->rank_moved(Rank(2), 7);
    own->lost(8);
    ASSERT_EQ(daemons.deaths.size(), 1u);
    own->heard(ended(0));
    own->heard(ended(1));
    own->heard(ended(2));
    EXPECT_EQ(own->ended(), 128 + SIGKILL);
}

// Open MPI 5's libraries abort when a peer is gone, and may be heard before the peer's end.
TEST_F(OwnMoves, AnAbortWaitsForItsCause) {
    own->heard(wire::Aborted{1, "x", 14, ""});
    own->heard(left(1));
    EXPECT_FALSE(own->ended());
    EXPECT_TRUE(daemons.deaths.empty());
    own->heard(killed(3));
    own->heard(wire::Aborted{0, "x", 14, ""});
    own->heard(left(0));
    own->heard(well(2));
    EXPECT_EQ(own->ended(), 128 + SIGKILL);
    ASSERT_EQ(daemons.deaths.size(), 1u);
    EXPECT_TRUE(daemons.deaths[0].starts_with("rank 3 on x (pid 10) was killed by signal 9"));
}

TEST_F(OwnMoves, AnAbortWithoutACauseIsToldAMomentLater) {
    own->heard(wire::Aborted{1, "x", 14, ""});
    EXPECT_FALSE(own->ended());
    EXPECT_TRUE(daemons.deaths.empty());
    std::this_thread::sleep_for(std::chrono::milliseconds(Cause::kMomentMs + 10));
    EXPECT_FALSE(own->ended()) << "others run still";
    ASSERT_EQ(daemons.deaths.size(), 1u);
    EXPECT_EQ(daemons.deaths[0], "rank 1 on x called MPI_Abort with 14");
    for (int32_t rank : {0, 1, 2, 3}) own->heard(killed(rank));
    EXPECT_EQ(own->ended(), 14);
}

TEST_F(OwnMoves, AnAbortIsTheCauseWhereNobodyIsLeft) {
    own->heard(wire::Aborted{1, "x", 14, ""});
    for (int32_t rank : {0, 1, 2, 3}) own->heard(rank == 1 ? left(1) : well(rank));
    EXPECT_EQ(own->ended(), 14);
    EXPECT_EQ(daemons.deaths.size(), 1u);
}

// A fence counts ranks, wherever they are: all of one node's part.
TEST_F(OwnMoves, AFenceIsWholeWithTheRanksOfOneNode) {
    own->rank_moved(Rank(2), 7);
    own->rank_moved(Rank(3), 7);
    own->lost(8);
    own->renew(1);
    daemons.told.clear();
    own->heard(wire::Fence{1, {}, 0, 4, 4, "data", ""});
    ASSERT_EQ(daemons.told.size(), 1u);
    const auto* whole = std::get_if<wire::Fence>(&daemons.told.back());
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->ranks, 4u);
    EXPECT_TRUE(whole->fault.empty());
}

}  // namespace
}  // namespace fermata::launch::own
