// Checkpoints that nobody asks for by hand: at intervals, and once before the wall time is over.
#include "root/plan/schedule.h"

#include <gtest/gtest.h>

namespace fermata::root {
namespace {

TEST(Schedule, NothingWithoutAnInterval) {
    Schedule schedule({}, 0);
    schedule.plan(0);
    EXPECT_FALSE(schedule.take_interval(1'000'000'000));
    EXPECT_EQ(schedule.take_walltime(1'000'000'000), Schedule::Due::nothing);
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
    journal::Measured one;
    one.standing = 1;
    schedule.measured(one);  // Daly: 199.3 s
    schedule.plan(0);
    EXPECT_FALSE(schedule.take_interval(199'000));
    EXPECT_TRUE(schedule.take_interval(200'000));
}

Settings with_walltime(double seconds) {
    Settings settings;
    settings.walltime = seconds;
    return settings;
}

journal::Measured taking(double seconds) {
    journal::Measured one;
    one.until_saving = one.writing = seconds / 2;
    one.standing = one.writing;
    one.bytes = 1000;
    return one;
}

TEST(Schedule, MeasuresEarlyAndStopsInTime) {
    Schedule schedule(with_walltime(100), 1'000);
    EXPECT_EQ(schedule.take_walltime(25'999), Schedule::Due::nothing);
    EXPECT_EQ(schedule.take_walltime(26'000), Schedule::Due::measure);  // a quarter
    schedule.measured(taking(10));  // once more as much, and the launcher's end
    EXPECT_EQ(schedule.take_walltime(30'000), Schedule::Due::nothing);
    EXPECT_EQ(schedule.take_walltime(78'999), Schedule::Due::nothing);
    EXPECT_EQ(schedule.take_walltime(79'000), Schedule::Due::stop);
    EXPECT_EQ(schedule.take_walltime(95'000), Schedule::Due::nothing);
}

TEST(Schedule, MeasuresAfterTenMinutesAtTheLatest) {
    Schedule schedule(with_walltime(48 * 3600), 0);
    EXPECT_EQ(schedule.take_walltime(599'999), Schedule::Due::nothing);
    EXPECT_EQ(schedule.take_walltime(600'000), Schedule::Due::measure);
    EXPECT_EQ(schedule.take_walltime(700'000), Schedule::Due::nothing);
    EXPECT_EQ(schedule.take_walltime(1'200'000), Schedule::Due::measure);  // it was refused, it seems
}

TEST(Schedule, WithoutAMeasureATenthIsLeft) {
    Schedule schedule(with_walltime(100), 1'000);
    (void)schedule.take_walltime(26'000);
    (void)schedule.take_walltime(51'000);
    EXPECT_EQ(schedule.take_walltime(90'999), Schedule::Due::nothing);
    EXPECT_EQ(schedule.take_walltime(91'000), Schedule::Due::stop);
}

TEST(Schedule, KnowsWhatTheLifeBeforeHasMeasured) {
    Settings settings = with_walltime(100);
    settings.measured_before = taking(10);
    settings.began = 1'000;  // the first life; this one is the second
    Schedule schedule(settings, 41'000);
    EXPECT_EQ(schedule.take_walltime(78'999), Schedule::Due::nothing);
    EXPECT_EQ(schedule.take_walltime(79'000), Schedule::Due::stop);
}

TEST(Schedule, NeverBeforeHalfOfTheTime) {
    Settings settings = with_walltime(100);
    settings.measured_before = taking(1000);
    Schedule schedule(settings, 0);
    EXPECT_EQ(schedule.take_walltime(49'999), Schedule::Due::nothing);
    EXPECT_EQ(schedule.take_walltime(50'000), Schedule::Due::stop);
}

TEST(Schedule, ARefusedLastOneIsTriedAgain) {
    Settings settings = with_walltime(100);
    settings.measured_before = taking(10);
    Schedule schedule(settings, 0);
    EXPECT_EQ(schedule.take_walltime(78'000), Schedule::Due::stop);
    schedule.stop_failed(80'000);
    EXPECT_EQ(schedule.take_walltime(84'999), Schedule::Due::nothing);
    EXPECT_EQ(schedule.take_walltime(85'000), Schedule::Due::stop);
}

TEST(Schedule, ALimitThatWasMoved) {
    Settings settings = with_walltime(100);
    settings.measured_before = taking(10);
    Schedule schedule(settings, 0);
    EXPECT_EQ(schedule.take_walltime(78'000), Schedule::Due::stop);
    schedule.ends_at(200'000);
    EXPECT_EQ(schedule.stop_due(), 178'000);
    EXPECT_EQ(schedule.take_walltime(177'999), Schedule::Due::nothing);
    EXPECT_EQ(schedule.take_walltime(178'000), Schedule::Due::stop);
}

}  // namespace
}  // namespace fermata::root
