// The table of ids: whatever pairs are in it, both directions are total and each the other's inverse; what a
// checkpoint notes and a restart renews.
#include "split/ids/ids.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "split/process/children.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"

namespace fermata::split::ids {
namespace {

std::vector<int> children() {
    std::vector<int> numbers;
    for (const process::Child& child : process::children()) numbers.push_back(child.pid);
    return numbers;
}

constexpr int32_t kHighest = 300;

std::unique_ptr<Table> table_of(const std::vector<Pair>& pairs) {
    auto table = std::make_unique<Table>();
    for (const Pair& pair : pairs) put(*table, pair);
    order(*table);
    return table;
}

// Every number that the kernel may give out is shown as one that no other number is shown as.
void expect_permutation(const Table& table) {
    std::set<int32_t> seen;
    for (int32_t real = 1; real <= kHighest; ++real) {
        const int32_t shown = shown_of(table, real);
        EXPECT_TRUE(seen.insert(shown).second) << real << " and another one are shown as " << shown;
        EXPECT_EQ(real_of(table, shown), real);
    }
}

TEST(Ids, AnEmptyTableChangesNothing) {
    const auto table = table_of({});
    EXPECT_EQ(table->changed, 0u);
    EXPECT_EQ(shown_of(*table, 17), 17);
    EXPECT_EQ(real_of(*table, 17), 17);
}

TEST(Ids, ANumberThatIsTakenStandsForTheOneThatTookIt) {
    const auto table = table_of({{100, 200, Kind::process, 0}, {101, 100, Kind::thread, 1}});
    EXPECT_EQ(table->changed, 1u);
    EXPECT_EQ(shown_of(*table, 200), 100);
    EXPECT_EQ(real_of(*table, 101), 100);
    EXPECT_EQ(shown_of(*table, 101), 200);  // the chain's end
    expect_permutation(*table);
}

TEST(Ids, WhateverPairsThereAreBothDirectionsAreInverse) {
    std::mt19937 random(20261127);
    for (int round = 0; round < 200; ++round) {
        std::vector<Pair> pairs;
        for (unsigned n = random() % 80; n != 0; --n) {
            const bool gone = random() % 8 == 0;
            pairs.push_back({static_cast<int32_t>(1 + random() % kHighest),
                             static_cast<int32_t>(1 + random() % kHighest + (gone ? kNoProcess : 0)),
                             Kind::gone, 0});
        }
        expect_permutation(*table_of(pairs));
    }
}

TEST(Ids, ANumberIsInOnePairOnly) {
    auto table = std::make_unique<Table>();
    EXPECT_TRUE(put(*table, {5, 6, Kind::process, 0}));
    EXPECT_FALSE(put(*table, {5, 7, Kind::thread, 1}));
    EXPECT_FALSE(put(*table, {8, 6, Kind::thread, 1}));
    EXPECT_FALSE(put(*table, {0, 9, Kind::parent, 0}));
    EXPECT_EQ(table->count, 1u);
}

TEST(Ids, AGroupIsNotCalledAfterAProcess) {
    auto table = table_of({{100, 200, Kind::process, 0}});
    table->group = {100, 50};
    EXPECT_EQ(shown_whole(*table, table->group, 50), 100);
    EXPECT_EQ(real_whole(*table, table->group, 100), 50);
    EXPECT_EQ(shown_whole(*table, table->group, 200), 100);  // one that the process made after a restart
    EXPECT_EQ(shown_whole(*table, table->group, 60), 60);
}

// The kernel's name for one outside the pid namespace, in one life or the other.
TEST(Ids, AGroupOutsideTheNamespaceIsCalledZero) {
    auto table = table_of({{100, 200, Kind::process, 0}});
    table->group = {0, 200};
    EXPECT_EQ(shown_whole(*table, table->group, 200), 0);
    EXPECT_EQ(shown_of(*table, 200), 100);
    table->group = {50, 0};
    EXPECT_EQ(shown_whole(*table, table->group, 0), 50);
    EXPECT_EQ(real_whole(*table, table->group, 50), 0);
    table->group = {50, Whole::kLeft};
    EXPECT_EQ(shown_whole(*table, table->group, 0), 0);
    EXPECT_EQ(real_whole(*table, table->group, 50), 50);
}

// Notes this process as if it had another number, and gives it its own back, with ranks around it.
class Renewed : public ::testing::Test {
  protected:
    static constexpr uint64_t kA = 1, kB = 2, kC = 3;
    static void SetUpTestSuite() { threads::create_table(); }

    static std::unique_ptr<Table> renewed(std::vector<RankProcess> ranks, int32_t self) {
        auto table = std::make_unique<Table>();
        note(*table, "a", children());
        table->pair[0].shown = ranks[static_cast<size_t>(self)].shown;
        order(*table);
        ranks[static_cast<size_t>(self)].real = raw::getpid();
        renew(*table, ranks, self);
        return table;
    }
    static int32_t own() { return raw::getpid(); }
};

TEST_F(Renewed, TheProcessAndItsParentGoOn) {
    const auto table = renewed({{77, 0, kA, kA}}, 0);
    EXPECT_EQ(shown_of(*table, own()), 77);
    EXPECT_EQ(real_of(*table, 77), own());
    EXPECT_EQ(shown_of(*table, getppid()), getppid());
    EXPECT_EQ(shown_whole(*table, table->group, getpgrp()), getpgrp());
    EXPECT_EQ(own_process(*table, "a").shown, 77);
}

TEST_F(Renewed, RanksOfTheNodeAreKnownAndThoseThatLeftAreNobody) {
    const auto table =
        renewed({{77, 0, kA, kA}, {78, 9001, kA, kA}, {79, 9002, kA, kB}, {80, 9003, kB, kB}}, 0);
    EXPECT_EQ(real_of(*table, 78), 9001);
    EXPECT_GE(real_of(*table, 79), kNoProcess);
    EXPECT_EQ(real_of(*table, 80), 80);  // never here
}

// Two nodes gave out the same number, and their ranks have come to one.
TEST_F(Renewed, WhereOldNumbersMeetTheOwnNodesCountFirst) {
    const std::vector<RankProcess> ranks = {
        {77, 0, kA, kC}, {78, 9001, kB, kC}, {78, 9002, kA, kC}, {77, 9003, kB, kC}};
    const auto table = renewed(ranks, 0);
    EXPECT_EQ(real_of(*table, 77), own());
    EXPECT_EQ(real_of(*table, 78), 9002);
    EXPECT_NE(shown_of(*table, 9001), 78);
    EXPECT_NE(shown_of(*table, 9003), 77);
    std::set<int32_t> shown;
    for (int32_t real : {own(), 9001, 9002, 9003}) shown.insert(shown_of(*table, real));
    EXPECT_EQ(shown.size(), 4u);
}

TEST_F(Renewed, WhatItIsShownAsLastsOverFurtherLives) {
    auto table = renewed({{77, 0, kA, kA}, {78, 9001, kA, kA}}, 0);
    note(*table, "a", children());
    EXPECT_EQ(own_process(*table, "a").shown, 77);
    renew(*table, {{77, own(), kA, kA}, {78, 9500, kA, kA}}, 0);
    EXPECT_EQ(real_of(*table, 77), own());
    EXPECT_EQ(real_of(*table, 78), 9500);
    EXPECT_NE(shown_of(*table, 9001), 78);
}

// A signal to its group would meet the launcher's otherwise.
TEST_F(Renewed, ALeaderOfItsGroupLeadsAgain) {
    const pid_t child = fork();
    if (child == 0) {
        auto table = std::make_unique<Table>();
        note(*table, "a", children());
        table->pair[0].shown = table->group.shown = 77;
        table->pair[0].real = kNoProcess - 1;  // of the life before
        order(*table);
        renew(*table, {{77, own(), kA, kA}}, 0);
        _exit(getpgrp() == own() && shown_whole(*table, table->group, getpgrp()) == 77 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST_F(Renewed, AChildOfAnEarlierLifeIsNobody) {
    const pid_t child = fork();
    if (child == 0) {
        for (;;) pause();
    }
    std::unique_ptr<Table> table;
    std::thread agent([&] {
        table = renewed({{77, 0, kA, kA}}, 0);
    });  // what it makes itself is not the program's
    agent.join();
    EXPECT_GE(real_of(*table, child), kNoProcess);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace fermata::split::ids
