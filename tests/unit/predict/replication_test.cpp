// Mean time to interruption with full and with partial replication, and the intervals that follow from it.
#include "predict/replication.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fermata::predict {
namespace {

constexpr double kYear = 365.0 * 86400;

TEST(Replication, FailuresUntilAPairIsGone) {
    const std::pair<uint64_t, double> kTable[] = {
        {1, 3}, {2, 3.66667}, {3, 4.2}, {8, 6.0922}, {128, 21.0726}, {1000, 57.0569}, {100000, 561.4998}};
    for (auto& [pairs, failures] : kTable)
        EXPECT_NEAR(failures_to_interruption(pairs), failures, 6e-5) << pairs;
}

// The integral gives for exponential failures what the formula for full replication does.
TEST(Replication, BothWaysToTheMeanTimeAgree) {
    for (uint64_t pairs : {1, 2, 3, 8, 128, 1000, 100000}) {
        const double formula = failures_to_interruption(pairs) * 1000 / (2 * static_cast<double>(pairs));
        EXPECT_NEAR(mtti({pairs, 0}, 1000) / formula, 1, 1e-7) << pairs;
    }
    EXPECT_NEAR(mtti({0, 250}, 1000), 4, 1e-7);  // without copies: the first failure
    EXPECT_NEAR(mtti({0, 1}, 1000, 0.7), 1000, 1e-4);
}

TEST(Replication, SharesOf256Ranks) {
    struct {
        double share, exponential, weibull;
    } constexpr kTable[] = {{0.25, 1.3288, 1.4995},
                            {0.50, 1.9707, 2.6244},
                            {0.75, 3.7081, 6.3771},
                            {0.90, 7.1066, 15.501},
                            {1.00, 14.6866, 39.908}};
    for (auto& [share, exponential, weibull] : kTable) {
        const Replicas some = Replicas::of(256, share), none = Replicas::of(256, 0);
        EXPECT_NEAR(mtti(some, kYear) / mtti(none, kYear), exponential, 6e-4 * exponential) << share;
        EXPECT_NEAR(mtti(some, kYear, 0.7) / mtti(none, kYear, 0.7), weibull, 6e-4 * weibull) << share;
        // The rate of the whole system being fixed, each of more processes fails more seldom.
        const double mtbf = kYear * static_cast<double>(some.processes()) / 256;
        const double times = static_cast<double>(256 + some.pairs) / 256;
        EXPECT_NEAR(mtti(some, mtbf) / mtti(none, kYear), exponential * times, 1e-3 * exponential * times);
    }
}

TEST(Replication, IntervalsOfAHundredThousandPairs) {
    constexpr uint64_t kPairs = 100000;
    const double mtbf = 5 * kYear, mean = mtti({kPairs, 0}, mtbf);
    EXPECT_NEAR(mean, 442'686, 1);
    EXPECT_NEAR(not_replaced(60, mean).seconds, 7288.5, 0.06);
    EXPECT_NEAR(not_replaced(60, mean).loss, 0.01646, 5e-6);
    EXPECT_NEAR(replaced(60, kPairs, mtbf).seconds, 22'366, 0.6);
    EXPECT_NEAR(replaced(60, kPairs, mtbf).loss, 0.004024, 5e-7);
    const Interval none = not_replaced(60, mtbf / (2 * kPairs));
    EXPECT_NEAR(none.seconds, 307.6, 0.06);
    EXPECT_NEAR(none.loss, 0.390, 5e-4);
    EXPECT_NEAR(not_replaced(600, mean).seconds, 23'048, 0.6);
    EXPECT_NEAR(not_replaced(600, mean).loss, 0.0521, 5e-5);
    EXPECT_NEAR(replaced(600, kPairs, mtbf).seconds, 48'186, 0.6);
    EXPECT_NEAR(replaced(600, kPairs, mtbf).loss, 0.01868, 5e-6);
}

}  // namespace
}  // namespace fermata::predict
