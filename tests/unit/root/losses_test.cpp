// Ranks and daemons that are gone: who ends the job, and when.
#include "root/start/losses.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fermata::root {
namespace {

using Verdict = Losses::Verdict;
constexpr Losses::Facts kMpiexec{true, false}, kSupervised{true, true}, kOther{false, false};

Losses::Rank gone(int32_t code = -1) { return {3, 77, "node-a", code}; }

TEST(Losses, NoneAtFirst) {
    Losses losses;
    EXPECT_FALSE(losses.any());
    EXPECT_EQ(losses.verdict(kOther, 1'000'000), Verdict::nothing);
}

// A launcher that exits with 0 then has not brought the job to its end.
TEST(Losses, ANodeIsMoreThanItsDaemon) {
    Losses soon, late, own;
    for (Losses* losses : {&soon, &late, &own}) {
        losses->daemon_gone("node-b", 7, 5, 5);
        losses->rank_gone(gone(0), 6);
        EXPECT_FALSE(losses->node());
    }
    soon.launcher_ended("node-a", 4 + Losses::kLauncherOfNodeMs);
    late.launcher_ended("node-a", 5 + Losses::kLauncherOfNodeMs);
    own.launcher_ended("node-b", 6);
    EXPECT_TRUE(soon.node());
    EXPECT_FALSE(late.node());
    EXPECT_FALSE(own.node());
    Losses losses;
    losses.daemon_gone("node-b", 7, 5, 5);
    losses.rank_gone(gone(), 7);
    EXPECT_TRUE(losses.node());
    EXPECT_EQ(losses.why(), "the node daemon of node-b (pid 7) is gone");
    EXPECT_EQ(losses.code(), 1);
}

TEST(Losses, ALauncherThatLeavesSurvivorsIsEndedAtOnce) {
    Losses losses;
    losses.rank_gone(gone(), 5);
    EXPECT_EQ(losses.verdict(kOther, 4 + Losses::kNewsMs), Verdict::nothing);
    EXPECT_EQ(losses.verdict(kOther, 5 + Losses::kNewsMs), Verdict::end);
    EXPECT_EQ(losses.what_it_means(kOther, Verdict::end), "rank 3 (pid 77 on node-a) is gone");
    EXPECT_EQ(losses.code(), 1);
    EXPECT_EQ(losses.verdict(kOther, 1'000), Verdict::nothing);  // once
}

TEST(Losses, ALauncherThatKnowsTheCodeEndsTheJob) {
    Losses losses;
    losses.rank_gone(gone(), 5);
    EXPECT_TRUE(losses.killed());
    losses.launcher_ends("rank 3 was ended by signal 9", 50);
    EXPECT_EQ(losses.verdict(kOther, 1'000), Verdict::nothing);
    EXPECT_EQ(losses.verdict(kOther, 50 + Losses::kLauncherMs), Verdict::end);
    Losses first;
    first.launcher_ends("rank 3 was ended by signal 9", 50);
    EXPECT_EQ(first.why(), "rank 3 was ended by signal 9");
    Losses left;
    left.rank_gone({3, 77, "node-a", 0}, 5);
    EXPECT_FALSE(left.killed());
    left.rank_gone({2, 78, "node-a", -1}, 6);
    EXPECT_FALSE(left.killed());
}

TEST(Losses, ALauncherThatEndsTheJobHasItsTime) {
    Losses losses;
    losses.rank_gone(gone(137), 5);
    EXPECT_EQ(losses.verdict(kMpiexec, 5), Verdict::nothing);
    EXPECT_EQ(losses.verdict(kMpiexec, 4 + Losses::kLauncherMs), Verdict::nothing);
    EXPECT_EQ(losses.verdict(kMpiexec, 5 + Losses::kLauncherMs), Verdict::end);
    EXPECT_EQ(losses.what_it_means(kMpiexec, Verdict::end),
              "rank 3 (pid 77 on node-a) has ended with 137, and the launcher has not ended the job in 10 s");
    EXPECT_EQ(losses.code(), 137);
}

// The launcher ends the ranks of other nodes before it is known that the daemon does not come back.
TEST(Losses, ADaemonThatWasGoneBeforeIsTheCause) {
    Losses losses;
    losses.rank_gone(gone(137), 50);
    losses.daemon_gone("node-b", 7, 5, 5005);
    EXPECT_EQ(losses.why(), "the node daemon of node-b (pid 7) is gone");
    EXPECT_EQ(losses.suspects(), std::vector<std::string>{"node-b"});
    EXPECT_TRUE(losses.node());
    Losses later;
    later.rank_gone(gone(137), 50);
    later.daemon_gone("node-b", 7, 51, 5051);
    EXPECT_EQ(later.why(), "rank 3 (pid 77 on node-a) has ended with 137");
    EXPECT_EQ(later.suspects(), (std::vector<std::string>{"node-b", "node-a"}));
}

// Only the name of the cause changes: a dead rank ends the job as soon, whatever else is lost.
TEST(Losses, ADaemonThatIsTheCauseDelaysNothing) {
    for (const Losses::Facts& facts : {kMpiexec, kSupervised, kOther}) {
        const int64_t patience = facts.launcher_ends_job ? Losses::kLauncherMs : Losses::kNewsMs;
        Losses losses;
        losses.rank_gone(gone(137), 50);
        losses.daemon_gone("node-b", 7, 5, 60);
        EXPECT_EQ(losses.verdict(facts, 49 + patience), Verdict::nothing);
        EXPECT_EQ(losses.verdict(facts, 50 + patience), Verdict::end);
        EXPECT_TRUE(losses.killed());
        EXPECT_EQ(losses.code(), 137);
    }
}

TEST(Losses, TheLaunchersOwnLineStays) {
    Losses losses;
    losses.launcher_ends("the launcher's line", 50);
    losses.daemon_gone("node-b", 7, 5, 60);
    EXPECT_EQ(losses.why(), "the launcher's line");
}

TEST(Losses, ADaemonsLossCountsFromWhenItIsKnown) {
    Losses losses;
    losses.daemon_gone("node-b", 7, 5, 5005);
    EXPECT_EQ(losses.verdict(kSupervised, 5004 + Losses::kLauncherOfNodeMs), Verdict::nothing);
    EXPECT_EQ(losses.verdict(kSupervised, 5005 + Losses::kLauncherOfNodeMs), Verdict::end);
}

TEST(Losses, WhoHasLeftByItselfKillsNobody) {
    for (const Losses::Facts& facts : {kMpiexec, kSupervised, kOther}) {
        Losses losses;
        losses.rank_gone(gone(0), 0);
        EXPECT_EQ(losses.verdict(facts, 0), Verdict::nothing);
        EXPECT_EQ(losses.verdict(facts, 100'000), Verdict::say);
        EXPECT_EQ(losses.verdict(facts, 1'000'000), Verdict::nothing);
        // But the next one may be dead.
        losses.rank_gone(gone(), 1'000'000);
        EXPECT_EQ(losses.verdict(facts, 2'000'000), Verdict::end);
    }
}

TEST(Losses, ALostDaemonEndsTheJobWhereItCanGoOn) {
    Losses losses;
    losses.daemon_gone("node-b", 5, 0, 0);
    EXPECT_TRUE(losses.daemon());
    EXPECT_EQ(losses.verdict(kSupervised, 0), Verdict::nothing);
    EXPECT_EQ(losses.verdict(kSupervised, Losses::kLauncherOfNodeMs), Verdict::end);
    EXPECT_EQ(losses.rank(), -1);
    Losses alone;
    alone.daemon_gone("node-b", 5, 0, 0);
    EXPECT_EQ(alone.verdict(kMpiexec, 1'000'000), Verdict::say);
    EXPECT_NE(alone.what_it_means(kMpiexec, Verdict::say).find("no checkpoint can be taken"),
              std::string::npos);
    EXPECT_EQ(alone.verdict(kMpiexec, 2'000'000), Verdict::nothing);
    Losses other;
    other.daemon_gone("node-b", 5, 0, 0);
    EXPECT_EQ(other.verdict(kOther, 0), Verdict::end);
}

TEST(Losses, TheFirstOneIsTheCause) {
    Losses losses;
    losses.rank_gone(gone(139), 0);
    losses.daemon_gone("node-b", 5, 0, 0);
    losses.rank_gone({1, 2, "node-b", 9}, 0);
    EXPECT_EQ(losses.why(), "rank 3 (pid 77 on node-a) has ended with 139");
    EXPECT_EQ(losses.code(), 139);
    EXPECT_TRUE(losses.daemon());
}

TEST(Losses, NodesThatMayBeGone) {
    Losses losses;
    EXPECT_TRUE(losses.suspects().empty());
    losses.rank_gone(gone(-1), 0);  // a scheduler takes a node's ranks before its daemon
    EXPECT_EQ(losses.suspects(), std::vector<std::string>{"node-a"});
    losses.daemon_gone("node-a", 5, 0, 0);
    losses.daemon_gone("node-b", 6, 0, 0);
    EXPECT_EQ(losses.suspects(), (std::vector<std::string>{"node-a", "node-b"}));
}

}  // namespace
}  // namespace fermata::root
