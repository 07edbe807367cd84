// A renewal goes through the phases of a checkpoint and saves nothing; whatever fails, the ranks go on as
// they were.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace fermata::root
