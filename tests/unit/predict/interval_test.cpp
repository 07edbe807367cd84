// Young's, Daly's and the exact interval, and the expected time, for jobs of all kinds.
#include "predict/interval.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fermata::predict {
namespace {

struct Row {
    double cost, recovery, mtbf, young, daly, exact, at_young, at_daly;
};
constexpr Row kRows[] = {{60, 60, 3600, 657.27, 617.88, 617.89, 1.22789, 1.22749},
                         {300, 300, 86400, 7200, 7001.39, 7001.40, 1.09200, 1.09197},
                         {600, 600, 86400, 10182.34, 9786.27, 9786.33, 1.13570, 1.13559},
                         {1200, 600, 21600, 7200, 6422.22, 6423.23, 1.46619, 1.46332},
                         {300, 600, 3600, 1469.69, 1276.50, 1276.88, 1.83723, 1.83068},
                         {1800, 1800, 14400, 7200, 6050, 6053.42, 1.96770, 1.95497}};

TEST(Interval, OneLevel) {
    for (const Row& row : kRows) {
        const Job job{row.cost, row.recovery, row.mtbf};
        EXPECT_NEAR(young(row.cost, row.mtbf), row.young, 0.006);
        EXPECT_NEAR(daly(row.cost, row.mtbf), row.daly, 0.006);
        EXPECT_NEAR(exact(row.cost, row.mtbf), row.exact, 0.006);
        EXPECT_NEAR(stretch(job, young(row.cost, row.mtbf)), row.at_young, 0.6e-5);
        EXPECT_NEAR(stretch(job, daly(row.cost, row.mtbf)), row.at_daly, 0.6e-5);
        EXPECT_NEAR(efficiency(job, row.young), 1 / row.at_young, 1e-5);
        EXPECT_NEAR(loss(job, row.young), row.at_young - 1, 1e-5);
    }
}

TEST(Interval, NoOtherCostsLessThanTheExactOne) {
    for (const Row& row : kRows) {
        const Job job{row.cost, row.recovery, row.mtbf};
        const double best = exact(row.cost, row.mtbf);
        for (double factor : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0})
            EXPECT_LT(stretch(job, best), stretch(job, factor * best)) << row.cost << ", " << factor;
    }
}

TEST(Interval, WhenOneCostsAsMuchAsTwoFailuresAreApartNoneIsGood) {
    EXPECT_EQ(daly(7200, 3600), 3600);
    EXPECT_EQ(daly(9000, 3600), 3600);
    EXPECT_LT(exact(9000, 3600), 3600);
}

TEST(Interval, TheExactOneOfCheckpointsThatCostNextToNothing) {
    for (double cost : {1e-9, 1e-6, 1e-3, 1.0})
        EXPECT_NEAR(exact(cost, 1e6) / young(cost, 1e6), 1, 1e-3) << cost;
    EXPECT_NEAR(exact(0, 3600), 0, 1e-6);
}

TEST(Interval, ATimeBeyondAllNumbers) {
    EXPECT_TRUE(std::isinf(stretch({1, 1, 1}, 1e6)));
    EXPECT_EQ(efficiency({1, 1, 1}, 1e6), 0);
}

TEST(Interval, AJobFailsAsOftenAsItsProcesses) { EXPECT_EQ(mtbf_of_job(86400, 24), 3600); }

}  // namespace
}  // namespace fermata::predict
