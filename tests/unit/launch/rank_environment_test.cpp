// The environment that every rank gets, where it depends on the job.
#include "launch/rank_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace fermata::launch {
namespace {

constexpr const char* kGrace = "OMPI_MCA_odls_base_sigkill_timeout";

std::optional<std::string> grace_of(bool may_restart) {
    LaunchPlan plan;
    plan.may_restart = may_restart;
    set_rank_environment(plan);
    const char* value = std::getenv(kGrace);
    return value ? std::optional<std::string>(value) : std::nullopt;
}

TEST(RankEnvironment, RanksGetNoTimeToEndWhereTheJobGoesOn) {
    ::unsetenv(kGrace);
    EXPECT_EQ(grace_of(false), std::nullopt);
    EXPECT_EQ(grace_of(true), "0");
    ::setenv(kGrace, "5", 1);
    EXPECT_EQ(grace_of(true), "5");  // the user's word
    ::unsetenv(kGrace);
}

}  // namespace
}  // namespace fermata::launch
