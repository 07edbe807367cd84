// Checkpoints that nobody asks for by hand: at intervals, and once before the wall time is over.
#include "root/schedule.h"

#include <gtest/gtest.h>

namespace fermata::root {
namespace {

TEST(Schedule, NothingWithoutAnInterval) {
    Schedule schedule({}, 0);
    schedule.plan(0);
    EXPECT_FALSE(schedule.take_interval(1'000'000'000));
    EXPECT_FALSE(schedule.take_walltime(1'000'000'000));
    EXPECT_EQ(schedule.rest(0, 200), 200);
}

TEST(Schedule, OneForEachInterval) {
    Settings settings;
    settings.interval = 10;
    Schedule schedule(settings, 0);
    EXPECT_FALSE(schedule.take_interval(50'000));  // the job does not run yet
    schedule.plan(1'000);
    EXPECT_EQ(schedule.rest(10'950, 200), 50);
    EXPECT_FALSE(schedule.take_interval(10'999));
    EXPECT_TRUE(schedule.take_interval(11'000));
    EXPECT_FALSE(schedule.take_interval(12'000));
    schedule.plan(12'000);
    schedule.end();
    EXPECT_FALSE(schedule.take_interval(99'000));
}

TEST(Schedule, AutoMeasuresFirst) {
    Settings settings;
    settings.interval = -1;
    settings.mtbf = 20'000;
    Schedule schedule(settings, 0);
    schedule.plan(0);
    EXPECT_FALSE(schedule.take_interval(59'999));
    EXPECT_TRUE(schedule.take_interval(60'000));
    schedule.measured(5, 1);  // sqrt(2 * 1 * 20000) - 1 = 199 s
    schedule.plan(0);
    EXPECT_FALSE(schedule.take_interval(198'000));
    EXPECT_TRUE(schedule.take_interval(199'001));
}

TEST(Schedule, TheLastOneInTime) {
    Settings settings;
    settings.walltime = 100;
    Schedule schedule(settings, 1'000);
    EXPECT_FALSE(schedule.take_walltime(90'999));
    EXPECT_TRUE(schedule.take_walltime(91'000));  // a tenth is left
    EXPECT_FALSE(schedule.take_walltime(95'000));
    Schedule measured(settings, 1'000);
    measured.measured(20, 3);  // twice that, and a fiftieth
    EXPECT_FALSE(measured.take_walltime(58'999));
    EXPECT_TRUE(measured.take_walltime(59'000));
}

}  // namespace
}  // namespace fermata::root
