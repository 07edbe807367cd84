// The phases of a checkpoint without sockets: each that fails is taken back, and what is good is committed.
#include <gtest/gtest.h>

#include "base/clock.h"
#include "keeping/levels/words.h"
#include "scene.h"

namespace fermata::root {
namespace {

TEST(Checkpoint, AGoodOneIsCommittedAndTheJobGoesOn) {
    Scene scene;
    const Outcome outcome = scene.take();
    EXPECT_TRUE(outcome.ok) << outcome.line;
    EXPECT_EQ(outcome.bytes, 15u);
    EXPECT_EQ(scene.job.phases,
              (Phases{"request", "targets", "converge", "freeze", "drain", "suspend", "commit", "resume"}));
    EXPECT_EQ(scene.job.noted,
              (Phases{"request", "targets", "converge", "freeze", "drain", "suspend", "commit", "resume"}));
    EXPECT_EQ(scene.job.commits, 1);
    EXPECT_EQ(scene.checkpoint.newest(), Generation(1));
    EXPECT_EQ(scene.checkpoint.count(), 1u);
    const auto list = scene.store.list();
    ASSERT_EQ(list.size(), 1u);
    ASSERT_TRUE(list[0].manifest);
    EXPECT_EQ(list[0].manifest->images.size(), 3u);
    EXPECT_EQ(scene.job.all<wire::Resume>().size(), 1u);
    EXPECT_TRUE(scene.job.all<wire::Cancel>().empty());
    EXPECT_FALSE(scene.checkpoint.in_progress());
    EXPECT_EQ(scene.checkpoint.phase(), "");
    EXPECT_TRUE(scene.take().ok);
    EXPECT_EQ(scene.checkpoint.newest(), Generation(2));
}

// One block a rank, each as slow in the last phase as is said here.
wire::BlockTimes times_of(int32_t rank, uint64_t save_us) {
    const auto block = static_cast<uint32_t>(rank);
    return {block, 1, {1000, 200, 0, 0, save_us}, {rank, rank, rank, rank, rank}, {1000, 200, 0, 0, save_us}};
}

TEST(Checkpoint, TheJournalHearsWhatRanksTookIfAllHaveSaidIt) {
    Scene scene;
    scene.job.times[0] = {times_of(0, 100'000), times_of(1, 2'000'000)};
    scene.job.times[1] = {times_of(2, 300'000)};
    EXPECT_TRUE(scene.take().ok);
    ASSERT_EQ(scene.job.of_ranks.size(), 1u);
    const nlohmann::json phase = {
        {"seconds", {0.1, 2.0, 0.3}}, {"slowest", {0, 1, 2}}, {"mean", 0.8}, {"host", "a"}};
    const nlohmann::json& event = scene.job.of_ranks[0];
    EXPECT_EQ(event.at("phases").at("save"), phase);
    EXPECT_EQ(event.at("phases").size(), 3u);  // nobody had a part in the others
    EXPECT_EQ(event.at("generation"), "gen-000001");
    EXPECT_EQ(event.at("ranks"), 3);
    EXPECT_EQ(event.at("blocks"), 3);
    // A rank that is none of its block, one that the job does not have, and one that is missing.
    using Times = std::vector<wire::BlockTimes>;
    for (const Times& others : {Times{times_of(1, 5)}, Times{times_of(3, 5)}, Times{}}) {
        scene.job.times[1] = others;
        EXPECT_TRUE(scene.take().ok);
    }
    wire::BlockTimes lies = times_of(2, 5);
    lies.slowest[0] = 1;
    scene.job.times[1] = {lies};
    EXPECT_TRUE(scene.take().ok);
    EXPECT_EQ(scene.job.of_ranks.size(), 1u);
    // A list of times that is none is no answer.
    lies.slowest.pop_back();
    scene.job.times[1] = {lies};
    EXPECT_FALSE(scene.take().ok);
}

TEST(Checkpoint, WithStopTheRanksAreToldToLeaveOnceItIsCommitted) {
    Scene scene;
    EXPECT_TRUE(scene.take(true).ok);
    EXPECT_EQ(scene.job.all<wire::Leave>().size(), 1u);
    EXPECT_TRUE(scene.job.all<wire::Resume>().empty());
    EXPECT_EQ(scene.generations(), 1u);
}

TEST(Checkpoint, WithForkedWritersTheRanksGoOnBeforeTheCommit) {
    Scene scene;
    scene.settings.save_options.forked = true;
    EXPECT_TRUE(scene.take().ok);
    EXPECT_EQ(scene.job.phases, (Phases{"request", "targets", "converge", "freeze", "drain", "suspend",
                                        "save", "commit", "resume"}));
    EXPECT_EQ(scene.job.all<wire::Resume>().size(), 2u);  // the second one asks who has gone on
}

TEST(Checkpoint, WithSynchronousSendsNobodyIsToldToTakeBeforeAllHaveClosed) {
    Scene scene;
    scene.job.synchronous = true;
    EXPECT_TRUE(scene.take().ok);
    EXPECT_EQ(scene.job.all<wire::Take>().size(), 1u);
}

TEST(Checkpoint, DrainsUntilAllThatWasSentIsReceived) {
    Scene scene;
    scene.job.on_their_way = 2;
    EXPECT_TRUE(scene.take().ok);
    EXPECT_EQ(scene.job.all<wire::Drain>().size(), 3u);
}

struct Way {
    Fault fault;
    ExitCode code;
    const char* line;
};
constexpr Way kWays[] = {
    {Fault::refusal, ExitCode::refused, "rank 0: it cannot"},
    {Fault::silence, ExitCode::timeout, "a time-out"},
    {Fault::loss, ExitCode::failed, "rank 2 (pid 5 on b) is gone"},
    {Fault::end, ExitCode::failed, "the job has ended"},
};

// Each phase before the commit, and what is said when its time is over.
constexpr std::pair<const char*, const char*> kPhases[] = {
    {"targets", "timeout in phase targets while waiting for every rank to report its collectives"},
    {"converge", "timeout in phase converge while waiting for the ranks to reach a safe state"},
    {"freeze", "timeout in phase freeze while waiting for every thread to stand"},
    {"drain", "timeout in phase drain while waiting for every rank to drain"},
    {"save", "timeout in phase suspend while waiting for every rank to write its image"}};

TEST(Checkpoint, WhateverMakesAPhaseFailItIsTakenBack) {
    for (auto& [phase, when_too_late] : kPhases)
        for (const Way& way : kWays) {
            SCOPED_TRACE(fmt::format("{}, {}", phase, way.line));
            Scene scene;
            scene.fail_at(phase, way.fault);
            const Outcome outcome = scene.take();
            EXPECT_FALSE(outcome.ok);
            EXPECT_EQ(outcome.code, way.code);
            EXPECT_EQ(outcome.line, way.fault == Fault::silence
                                        ? fmt::format("{}:\nrank 0 waits", when_too_late)
                                        : way.line);
            EXPECT_EQ(outcome.diagnosis, way.fault == Fault::silence ? "rank 0 waits" : "");
            ASSERT_EQ(scene.job.all<wire::Cancel>().size(), 1u);
            EXPECT_EQ(scene.job.all<wire::Cancel>()[0].epoch, scene.job.all<wire::Begin>()[0].epoch);
            EXPECT_EQ(scene.generations(), 0u);
            EXPECT_FALSE(std::filesystem::exists(scene.directory.path() + "/gen-000001"));
            EXPECT_EQ(scene.job.commits, 0);
            EXPECT_FALSE(scene.checkpoint.newest());
            EXPECT_FALSE(scene.checkpoint.in_progress());
            EXPECT_EQ(scene.checkpoint.phase(), "");
        }
}

TEST(Checkpoint, AfterAFailureTheNextOneIsGood) {
    Scene scene;
    scene.fail_at("drain", Fault::refusal);
    EXPECT_FALSE(scene.take().ok);
    EXPECT_TRUE(scene.take().ok);
    EXPECT_EQ(scene.generations(), 1u);
}

TEST(Checkpoint, AnImageThatCannotBeWrittenOrIsGoneBeforeTheCommitTakesItBack) {
    for (const char* phase : {"save", "commit"}) {
        Scene scene;
        scene.fail_at(phase, Fault::error);
        const Outcome outcome = scene.take();
        EXPECT_FALSE(outcome.ok);
        const char* why = std::string(phase) == "save" ? "no space left" : "cannot be found any more";
        EXPECT_NE(outcome.line.find(why), std::string::npos) << outcome.line;
        EXPECT_EQ(scene.job.all<wire::Cancel>().size(), 1u);
        EXPECT_FALSE(std::filesystem::exists(scene.directory.path() + "/gen-000001"));
    }
}

TEST(Checkpoint, ThatIsCancelledOrDisturbedIsTakenBack) {
    for (const char* why : {"cancelled", "a connection broke"}) {
        Scene scene;
        scene.job.fails_at = "drain";
        scene.job.at_fault = [&] {
            if (std::string(why) == "cancelled")
                scene.checkpoint.cancel();
            else
                scene.checkpoint.disturbed(why);
        };
        const Outcome outcome = scene.take();
        EXPECT_FALSE(outcome.ok);
        EXPECT_EQ(outcome.line, why);
        EXPECT_EQ(scene.job.all<wire::Cancel>().size(), 1u);
        EXPECT_EQ(scene.generations(), 0u);
    }
}

// Nothing has been told then.
TEST(Checkpoint, OfAJobThatHasNotStartedOrIsOverIsRefused) {
    Scene starting;
    starting.fail_at("request", Fault::silence);
    EXPECT_EQ(starting.take().line,
              "timeout in phase request while waiting for the job to start (of 3 ranks, rank 2 is missing):\n"
              "rank 0 waits");
    EXPECT_TRUE(starting.job.told.empty());
    EXPECT_EQ(starting.generations(), 0u);
    for (Fault fault : {Fault::loss, Fault::end}) {
        Scene scene;
        scene.fail_at("request", fault);
        EXPECT_FALSE(scene.take().ok);
        EXPECT_TRUE(scene.job.told.empty());
    }
    Scene over;
    over.job.now.finalized = true;
    EXPECT_EQ(over.take().code, ExitCode::refused);
    EXPECT_TRUE(over.job.told.empty());
}

// Its image would be that of a process which still follows, and writes elsewhere.
TEST(Checkpoint, OfACopyThatIsAboutToTakeARanksPlaceIsNotMade) {
    const char* why = "a rank has died, and its copy is about to take its place";
    Scene before;
    before.job.now.replaced = true;
    EXPECT_EQ(before.take().line, why);
    EXPECT_TRUE(before.job.told.empty());
    EXPECT_EQ(before.generations(), 0u);
    Scene later;
    later.job.fails_at = "drain";
    later.job.at_fault = [&] { later.job.now.replaced = true; };
    EXPECT_EQ(later.take().line, why);
    EXPECT_EQ(later.job.all<wire::Cancel>().size(), 1u);
    EXPECT_EQ(later.generations(), 0u);
}

TEST(Checkpoint, ThatIsCommittedStaysWhateverHappensAtResume) {
    for (const Way& way : kWays) {
        SCOPED_TRACE(way.line);
        Scene scene;
        scene.fail_at("resume", way.fault);
        const Outcome outcome = scene.take();
        EXPECT_FALSE(outcome.ok);
        EXPECT_NE(outcome.line.find("generation gen-000001 is complete"), std::string::npos) << outcome.line;
        EXPECT_EQ(scene.generations(), 1u);
        EXPECT_EQ(scene.checkpoint.newest(), Generation(1));
        EXPECT_TRUE(scene.job.all<wire::Cancel>().empty());
    }
}

TEST(Checkpoint, RanksThatDoNotGoOnAfterwardsAreCounted) {
    Scene scene;
    scene.fail_at("cancel", Fault::silence);  // nobody answers that
    scene.job.on_their_way = 1000000;         // and the drain does not end
    const Outcome outcome = scene.take();
    EXPECT_NE(outcome.line.find("; 3 of 3 ranks have not gone on yet"), std::string::npos) << outcome.line;
    EXPECT_EQ(scene.generations(), 0u);
}

// The rank was told of it, its copy was not.
TEST(Checkpoint, ARankThatDiesAsItIsTakenBackIsNotWaitedForLong) {
    Scene scene;
    scene.fail_at("cancel", Fault::silence);
    scene.settings.limits.resume = 60;
    scene.job.at_fault = [&] { scene.job.now.replaced = true; };
    scene.job.on_their_way = 1000000;
    const double start = monotonic_s();
    EXPECT_FALSE(scene.take().ok);
    EXPECT_LT(monotonic_s() - start, 10);
    EXPECT_EQ(scene.generations(), 0u);
}

class InMemory : public testing::Test {
  protected:
    InMemory() {
        scene_.settings.levels = keeping::parse_levels("memory 10s");
        scene_.keeper_of_job = &scene_.keeper;
    }
    Outcome take(const std::string& why_no_room) {
        for (const char* node : {"a", "b"}) scene_.job.rooms.push_back(wire::Room{1, node, why_no_room, ""});
        return scene_.take(false, store::LevelName::memory);
    }
    Scene scene_;
};

TEST_F(InMemory, RanksGetNoDirectoryAndTheManifestSaysWhichNodeHasWhat) {
    const Outcome outcome = take("");
    EXPECT_TRUE(outcome.ok) << outcome.line;
    EXPECT_EQ(scene_.job.all<wire::Save>().at(0).directory, "");
    const auto list = scene_.store.list();
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0].manifest->nodes, (std::vector<std::string>{"a", "a", "b"}));
    EXPECT_EQ(outcome.line.rfind("gen-000001 in the memory of a, b: ", 0), 0u) << outcome.line;
}

TEST_F(InMemory, WithoutRoomItGoesToFiles) {
    const Outcome outcome = take("1.0 GiB of memory for 2.0 GiB");
    EXPECT_TRUE(outcome.ok) << outcome.line;
    EXPECT_EQ(scene_.checkpoint.level(), store::LevelName::files);
    EXPECT_NE(scene_.job.all<wire::Save>().at(0).directory, "");
}

TEST_F(InMemory, WithoutAnswersAboutRoomTheGenerationIsAbandonedAndNoRankHearsOfIt) {
    scene_.settings.limits.checkpoint = 0.1;
    const Outcome outcome = scene_.take(false, store::LevelName::memory);
    EXPECT_EQ(outcome.code, ExitCode::timeout);
    EXPECT_TRUE(scene_.job.told.empty());
    EXPECT_FALSE(std::filesystem::exists(scene_.directory.path() + "/gen-000001"));
}

}  // namespace
}  // namespace fermata::root
