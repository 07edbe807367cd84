// A renewal goes through the phases of a checkpoint and saves nothing; whatever fails, the ranks go on as
// they were.
#include <gtest/gtest.h>

#include "replay/wire_form.h"
#include "scene.h"

namespace fermata::root {
namespace {

Outcome renew(Scene& scene) {
    Request request{"command", false, 0, 3};
    request.renewal = launch::Renewal{{"A=b"}};
    return scene.checkpoint.take(request, store::LevelName::files, 0);
}

TEST(Renewal, SavesNothingAndTheRanksGoOn) {
    Scene scene;
    const Outcome outcome = renew(scene);
    EXPECT_TRUE(outcome.ok) << outcome.line;
    EXPECT_EQ(scene.job.phases,
              (Phases{"request", "targets", "converge", "freeze", "drain", "renew", "resume"}));
    ASSERT_EQ(scene.job.all<wire::Renew>().size(), 1u);
    EXPECT_EQ(scene.job.all<wire::Renew>()[0].world, 1u);
    EXPECT_EQ(scene.job.all<wire::Renew>()[0].environment, (std::vector<std::string>{"A=b"}));
    EXPECT_EQ(scene.job.all<wire::Resume>().size(), 1u);
    EXPECT_TRUE(scene.job.all<wire::Save>().empty());
    EXPECT_EQ(scene.job.commits, 0);
    EXPECT_EQ(scene.generations(), 0u);
    EXPECT_EQ(scene.checkpoint.count(), 0u);
    EXPECT_TRUE(renew(scene).ok);
    EXPECT_EQ(scene.job.all<wire::Renew>()[1].world, 2u);
    EXPECT_TRUE(scene.take().ok);
    EXPECT_EQ(scene.generations(), 1u);
}

// By one the copy becomes the rank.
TEST(Renewal, IsMadeWhileACopyIsAboutToTakeARanksPlace) {
    Scene scene;
    scene.job.now.replaced = true;
    EXPECT_TRUE(renew(scene).ok);
}

TEST(Renewal, WaitsForNoCopyThatTakesAPlaceAsAllGoOn) {
    Scene scene;
    scene.fail_at("resume", Fault::silence);
    scene.job.at_fault = [&] { scene.job.now.replaced = true; };
    const Outcome outcome = renew(scene);
    EXPECT_TRUE(outcome.ok) << outcome.line;
    EXPECT_EQ(scene.job.all<wire::Resume>().size(), 1u);
}

TEST(Renewal, WhateverMakesItFailTheRanksGoOnAsTheyWere) {
    for (const char* phase : {"targets", "converge", "freeze", "drain", "renew"})
        for (Fault fault : {Fault::refusal, Fault::silence, Fault::loss}) {
            Scene scene;
            scene.fail_at(phase, fault);
            const Outcome outcome = renew(scene);
            EXPECT_FALSE(outcome.ok) << phase;
            EXPECT_FALSE(outcome.line.empty()) << phase;
            EXPECT_EQ(scene.job.all<wire::Cancel>().size(), 1u) << phase;
            EXPECT_TRUE(scene.job.all<wire::Resume>().empty()) << phase;
            EXPECT_EQ(scene.generations(), 0u) << phase;
        }
}

TEST(Renewal, ARankWhoseSecondHalfDoesNotStartGivesItUp) {
    Scene scene;
    scene.fail_at("renew", Fault::error);
    const Outcome outcome = renew(scene);
    EXPECT_FALSE(outcome.ok);
    EXPECT_EQ(outcome.line, "rank 1: its second half has ended");
    EXPECT_EQ(scene.job.all<wire::Cancel>().size(), 1u);
}

TEST(Renewal, WhereTheLauncherHasNoOtherWorldNoRankHearsOfIt) {
    Scene scene;
    scene.job.no_renewal = "another launcher";
    const Outcome outcome = renew(scene);
    EXPECT_EQ(outcome.code, ExitCode::refused);
    EXPECT_EQ(outcome.line, "another launcher");
    EXPECT_TRUE(scene.job.told.empty());
}

// ---- of ranks that keep a message log

// Rank 1 was told the second collective, and has consumed five messages of rank 0.
replay::Said said_by(uint32_t rank) {
    using namespace replay;
    Said said{Rank(rank), {}, {}};
    CommCounts world{Uid{1}, Uid{0}, Instance{0}, {}, {}, Instance{2}};
    for (uint32_t n = 0; n < 3; ++n) world.members.push_back(Rank(n));
    for (uint64_t n = 1; n <= (rank == 1 ? 2u : 1u); ++n) world.told.add(Instance{n});
    said.comms.push_back(world);
    if (rank == 1) said.consumed.push_back({{Uid{1}, Rank(0), Rank(1), replay::Tag{7}}, MessageNo{5}});
    return said;
}

wire::Bytes as_wire(const replay::Bytes& bytes) {
    auto* at = reinterpret_cast<const std::byte*>(bytes.data());
    return {at, at + bytes.size()};
}

struct Logged : Scene {
    Logged() {
        settings.message_log = true;
        settings.log_memory = 3u << 20;
        job.counts = [](uint32_t rank) { return as_wire(replay::wire_form(said_by(rank))); };
    }
    // Those that the root has given to this rank.
    std::optional<replay::Orders> orders_of(int32_t rank) const {
        for (const wire::LogOrders& all : job.all<wire::LogOrders>()) {
            const auto ranks = tree::Ranks::of(all.ranks);
            if (!ranks || !ranks->contains(rank)) continue;
            const wire::Bytes& bytes = all.orders.at(ranks->place_of(rank));
            return replay::orders_from({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, 3);
        }
        return {};
    }
};

TEST(Renewal, RanksThatKeepALogStandAnywhereAndHearOfEachOther) {
    Logged scene;
    const Outcome outcome = renew(scene);
    EXPECT_TRUE(outcome.ok) << outcome.line;
    EXPECT_EQ(scene.job.phases, (Phases{"request", "freeze", "exchange", "renew", "resume"}));
    ASSERT_EQ(scene.job.all<wire::Begin>().size(), 1u);
    EXPECT_TRUE(scene.job.all<wire::Begin>()[0].anywhere);
    EXPECT_TRUE(scene.job.all<wire::Freeze>().empty() && scene.job.all<wire::Drain>().empty());
    for (int32_t rank : {0, 1, 2}) {
        const auto orders = scene.orders_of(rank);
        ASSERT_TRUE(orders) << rank;
        EXPECT_EQ(orders->known.size(), rank == 0 ? 1u : 0u) << "what rank 1 has consumed is rank 0's matter";
        ASSERT_EQ(orders->comms.size(), 1u);
        ASSERT_EQ(orders->comms[0].plan.size(), 1u);
        EXPECT_EQ(orders->comms[0].plan[0].instance, replay::Instance{2});
    }
    const auto first = scene.orders_of(0)->epoch;
    scene.job.told.clear();
    EXPECT_TRUE(renew(scene).ok);
    EXPECT_GT(scene.orders_of(0)->epoch, first);
}

TEST(Renewal, EpochsOfLogsGrowOverTheLivesOfAJob) {
    Logged scene;
    EXPECT_TRUE(renew(scene).ok);
    const auto first = scene.orders_of(0)->epoch;
    Logged next;
    next.settings.restarts = 1;
    EXPECT_TRUE(renew(next).ok);
    EXPECT_GT(next.orders_of(0)->epoch, first);
}

TEST(Renewal, CountsThatAreDamagedOrOfAnotherRankGiveItUp) {
    for (const wire::Bytes& bad : {wire::Bytes(7), as_wire(replay::wire_form(said_by(0)))}) {
        Logged scene;
        auto good = scene.job.counts;
        scene.job.counts = [&](uint32_t rank) { return rank == 2 ? bad : good(rank); };
        const Outcome outcome = renew(scene);
        EXPECT_FALSE(outcome.ok);
        EXPECT_EQ(outcome.line, "rank 2: what it says of its message log is damaged");
        EXPECT_EQ(scene.job.all<wire::Cancel>().size(), 1u);
        EXPECT_TRUE(scene.job.all<wire::Renew>().empty());
    }
}

TEST(Renewal, WhateverMakesItFailRanksThatKeepALogGoOnAsTheyWere) {
    for (const char* phase : {"freeze", "renew"})
        for (Fault fault : {Fault::refusal, Fault::silence, Fault::loss}) {
            Logged scene;
            scene.fail_at(phase, fault);
            EXPECT_FALSE(renew(scene).ok) << phase;
            EXPECT_EQ(scene.job.all<wire::Cancel>().size(), 1u) << phase;
        }
}

TEST(LoggedCheckpoint, SavesRanksWhereTheyStandWithWhatTheyShare) {
    for (const bool stop : {false, true}) {
        Logged scene;
        scene.settings.replicas = "all";
        const Outcome outcome = scene.take(stop);
        EXPECT_TRUE(outcome.ok) << outcome.line;
        Phases wanted{"request", "freeze", "suspend", "commit", "resume"};
        if (!stop) wanted.insert(wanted.begin() + 3, "save");  // the ranks run on
        EXPECT_EQ(scene.job.phases, wanted);
        EXPECT_TRUE(scene.job.all<wire::Begin>().at(0).anywhere);
        EXPECT_TRUE(scene.job.all<wire::Drain>().empty() && scene.job.all<wire::LogOrders>().empty());
        ASSERT_EQ(scene.job.all<wire::Save>().size(), 1u);
        EXPECT_EQ(scene.job.all<wire::Save>()[0].uses,
                  (std::vector<wire::Bytes>{wire::Bytes(0), wire::Bytes(1), wire::Bytes(2)}));
        EXPECT_EQ(scene.job.all<wire::Resume>().empty(), stop);
        EXPECT_EQ(scene.job.all<wire::Leave>().size(), stop ? 1u : 0u);
        ASSERT_EQ(scene.generations(), 1u);
        const auto log = scene.store.list()[0].manifest->message_log;
        ASSERT_TRUE(log);
        EXPECT_EQ(log->replicas, "all");
        EXPECT_EQ(log->memory, 3u << 20);
        // The epochs of what is restarted from it are higher.
        Settings next;
        next.message_log = true;
        next.restarts = 1;
        next.log_epoch = log->epoch;
        EXPECT_GT(next.first_epoch(), log->epoch);
        next.log_epoch = 5000;
        EXPECT_GT(next.first_epoch(), 5000u);
    }
}

TEST(LoggedCheckpoint, WhateverMakesItFailTheRanksGoOnAndNothingIsLeft) {
    for (const char* phase : {"freeze", "uses", "save"})
        for (Fault fault : {Fault::refusal, Fault::silence, Fault::loss}) {
            Logged scene;
            scene.fail_at(phase, fault);
            EXPECT_FALSE(scene.take().ok) << phase;
            EXPECT_EQ(scene.job.all<wire::Cancel>().size(), 1u) << phase;
            EXPECT_EQ(scene.generations(), 0u) << phase;
        }
}

}  // namespace
}  // namespace fermata::root
