// Lives, checkpoints, failures and lost work of a job, out of the events of its journal.
#include "journal/history.h"

#include <gtest/gtest.h>

namespace fermata::journal {
namespace {

using nlohmann::json;

struct Journal {
    std::vector<Event> events;
    int64_t now = 1'000'000;
    uint64_t job = 7;

    Journal& at(double seconds, Kind kind, json fields = json::object()) {
        events.push_back({kind, job, now + static_cast<int64_t>(seconds * 1000), std::move(fields)});
        return *this;
    }
};

Journal two_lives() {
    Journal j;
    j.at(0, Kind::start, {{"name", "solver"}, {"host", "a"}, {"ranks", 4}, {"command", {"./solver", "x"}}})
        .at(1, Kind::running, {{"ranks", 4}, {"nodes", 2}, {"mpi", "mpich"}})
        .at(10, Kind::request, {{"origin", "interval"}})
        .at(11, Kind::phase, {{"phase", "converge"}, {"seconds", 1.0}, {"last", "b"}})
        .at(13, Kind::checkpoint,
            {{"ok", true},
             {"generation", "gen-000001"},
             {"seconds", 3.0},
             {"standing", 0.5},
             {"behind", 2.0},
             {"cost", 0.7},
             {"bytes", 1000}})
        .at(15, Kind::copy, {{"ok", true}, {"level", "buddy"}, {"generation", "gen-000001"}, {"seconds", 2}})
        .at(20, Kind::checkpoint, {{"ok", false}, {"line", "no room"}})
        .at(31, Kind::loss, {{"why", "rank 1 is gone"}, {"rank", 1}, {"host", "b"}, {"pid", 5}})
        .at(32, Kind::end, {{"code", 137}, {"why", "rank 1 is gone"}, {"newest", "gen-000001"}})
        .at(32, Kind::restart, {{"number", 1}, {"from", "gen-000001"}, {"pause", 1}})
        .at(33, Kind::start, {{"name", "solver"}, {"restored", "gen-000001"}, {"restarts", 1}})
        .at(35, Kind::running, {{"ranks", 4}, {"nodes", 1}, {"mpi", "mpich"}})
        .at(45, Kind::end, {{"code", 0}});
    return j;
}

TEST(History, OfAJobThatFailedOnce) {
    const auto all = histories(two_lives().events);
    ASSERT_EQ(all.size(), 1u);
    const History& job = all[0];
    ASSERT_EQ(job.lives.size(), 2u);
    EXPECT_TRUE(job.begun);
    EXPECT_EQ(job.name(), "solver");
    EXPECT_EQ(job.ranks(), 4);
    EXPECT_EQ(job.command, (std::vector<std::string>{"./solver", "x"}));
    EXPECT_DOUBLE_EQ(job.running(), 31 + 10);
    EXPECT_EQ(job.failures(), 1u);
    EXPECT_EQ(job.recoveries(), std::vector<double>{4});  // 31 to 35
    EXPECT_DOUBLE_EQ(job.lost_after(0), 31 - 11);         // captured 2 s before the commit at 13
    EXPECT_EQ(job.lost_after(1), 0);
    EXPECT_EQ(job.good().size(), 1u);
    const Life& first = job.lives[0];
    ASSERT_EQ(first.checkpoints.size(), 2u);
    EXPECT_EQ(first.checkpoints[0].phases.size(), 1u);
    EXPECT_EQ(first.checkpoints[0].cost, 0.7);
    EXPECT_EQ(first.checkpoints[1].line, "no room");
    EXPECT_EQ(first.copies.at(0).level, "buddy");
    EXPECT_EQ(first.failure()->rank, 1);
    EXPECT_FALSE(job.lives[1].failure());
}

TEST(History, ALifeThatGoesOnFromNothingHasLostAllOfIt) {
    Journal j;
    j.at(0, Kind::start, {{"name", "s"}})
        .at(1, Kind::running)
        .at(9, Kind::end, {{"code", 1}, {"why", "bad"}})
        .at(9, Kind::restart, {{"from", ""}})
        .at(9, Kind::start, {{"restored", ""}})
        .at(10, Kind::running);
    const auto all = histories(j.events);
    EXPECT_EQ(all.at(0).lost_after(0), 8);
    EXPECT_EQ(all.at(0).recoveries(), std::vector<double>{1});
}

TEST(History, AskedToStopIsNoFailure) {
    for (int code : {0, 85, 143}) {
        Journal j;
        j.at(0, Kind::start).at(1, Kind::running).at(9, Kind::end, {{"code", code}});
        EXPECT_EQ(histories(j.events).at(0).failures(), 0u) << code;
    }
}

TEST(History, AJournalWhoseBeginningIsGone) {
    Journal j;
    j.at(5, Kind::checkpoint, {{"ok", true}, {"standing", 2.0}}).at(9, Kind::loss, {{"why", "x"}});
    const auto all = histories(j.events);
    EXPECT_FALSE(all.at(0).begun);
    EXPECT_EQ(all[0].good().at(0)->cost, 2);  // of journals that do not say it
    EXPECT_EQ(all[0].lives.at(0).failure()->why, "x");
}

json times(json seconds, json slowest, double mean = 0) {
    return {{"seconds", std::move(seconds)}, {"slowest", std::move(slowest)}, {"mean", mean}, {"host", "b"}};
}

TEST(History, TimesOfRanksAreThoseOfTheCheckpointThatFollows) {
    Journal j;
    j.at(0, Kind::start)
        .at(1, Kind::ranks, {{"ranks", 2}, {"blocks", 2}, {"phases", {{"save", times({1, 2}, {0, 1})}}}})
        .at(2, Kind::request)
        .at(3, Kind::checkpoint, {{"ok", true}})
        .at(4, Kind::request)
        .at(5, Kind::ranks,
            {{"ranks", 200},
             {"blocks", 64},
             {"phases",
              {{"save", times(json(std::vector<double>(64, 0.5)), json(std::vector<int>(64, 150)), 0.25)}}}})
        .at(6, Kind::checkpoint, {{"ok", true}})
        .at(7, Kind::checkpoint, {{"ok", true}});
    const History job = histories(j.events).at(0);
    const auto& made = job.lives.at(0).checkpoints;
    EXPECT_TRUE(made.at(0).took.phases.empty());  // they were of one that came to no end
    const RanksTook& took = made.at(1).took;
    ASSERT_EQ(took.phases.size(), 1u);
    EXPECT_EQ(took.ranks, 200);
    EXPECT_EQ(took.first_of(0), 0);
    EXPECT_EQ(took.first_of(1), 4);  // 3 * 64 / 200 is 0
    EXPECT_EQ(took.first_of(64), 200);
    EXPECT_EQ(took.longest_wait()->excess(), 0.25);
    EXPECT_EQ(took.longest_wait()->host, "b");
    EXPECT_TRUE(made.at(2).took.phases.empty());
}

// Lists are as long as there are blocks, whatever is in the file.
TEST(History, TimesOfRanksThatCannotBeAreLeftOut) {
    const json good = times({1, 2}, {0, 1}), many = json(std::vector<int>(65, 1));
    auto took = [](json ranks, json blocks, json phases) {
        return ranks_took(
            {Kind::ranks,
             7,
             0,
             {{"ranks", std::move(ranks)}, {"blocks", std::move(blocks)}, {"phases", std::move(phases)}}});
    };
    EXPECT_EQ(took(2, 2, {{"a", good}}).phases.size(), 1u);
    for (const json& bad :
         {times({1}, {0, 1}), times({1, 2}, {0}), times({1, 2}, {0, 2}), times({1, 2}, {0, -1}),
          times({1, -2}, {0, 1}), times({1, 1e300}, {0, 1}), times({1, "2"}, {0, 1}), times(1, 2),
          json::object({{"seconds", {1, 2}}}), json(5), json()})
        EXPECT_EQ(took(2, 2, {{"a", bad}, {"b", good}}).phases.size(), 1u) << bad;
    for (const json& number : {json(0), json(-1), json(1e300), json("2"), json()}) {
        EXPECT_TRUE(took(number, 2, {{"a", good}}).phases.empty()) << number;
        EXPECT_TRUE(took(2, number, {{"a", good}}).phases.empty()) << number;
    }
    EXPECT_TRUE(took(65, 65, {{"a", times(many, many)}}).phases.empty());
    EXPECT_TRUE(took(2, 2, {1, 2}).phases.empty());
    EXPECT_EQ(took(2, 2, {{"a", times({1, 2}, {0, 1}, 1e300)}}).phases.at(0).mean, 2);
    json crowd = json::object();
    for (int i = 0; i < 1000; ++i) crowd["phase" + std::to_string(i)] = good;
    EXPECT_LE(took(2, 2, crowd).phases.size(), 32u);
    EXPECT_EQ(RanksTook().longest_wait(), nullptr);
}

TEST(History, NumbersThatCannotBe) {
    Journal j;
    j.at(0, Kind::start, {{"ranks", 1e300}, {"name", 5}, {"command", "x"}})
        .at(1, Kind::running, {{"ranks", -7}})
        .at(2, Kind::checkpoint, {{"ok", 1}, {"seconds", -5}, {"bytes", 1e300}, {"behind", 1e300}})
        .at(3, Kind::phase, {{"seconds", "long"}});
    const History job = histories(j.events).at(0);
    EXPECT_EQ(job.lives[0].ranks, -1);
    EXPECT_EQ(job.ranks(), 0);
    EXPECT_FALSE(job.lives[0].checkpoints.at(0).ok);
    EXPECT_EQ(job.lives[0].checkpoints[0].seconds, 0);
}

TEST(History, TwoJobsOfOneDirectory) {
    Journal j;
    j.at(0, Kind::start);
    j.job = 8;
    j.at(1, Kind::start);
    j.job = 7;
    j.at(2, Kind::running);
    const auto all = histories(j.events);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].job, 7u);
    EXPECT_EQ(all[0].events, 2u);
}

}  // namespace
}  // namespace fermata::journal
