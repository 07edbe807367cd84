// Laws of failures, and who dies when. The numbers were computed by another program (Python) from the
// formulas.
#include "root/plan/injection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace fermata::root {
namespace {

using Process = Injector::Process;

TEST(Injection, Words) {
    const Injection one = Injection::parse("weibull:shape=0.7,scale=20s,seed=3,per=process,replace=no");
    EXPECT_EQ(one.shape, 0.7);
    EXPECT_EQ(one.scale, 20);
    EXPECT_EQ(one.seed, 3u);
    EXPECT_TRUE(one.per_process);
    EXPECT_FALSE(one.replace);
    const Injection other = Injection::parse("exponential:mtbf=1m");
    EXPECT_EQ(other.shape, 1);
    EXPECT_EQ(other.scale, 60);
    EXPECT_FALSE(other.per_process);
    EXPECT_TRUE(other.replace);
    for (const char* wrong :
         {"", "weibull", "weibull:", "weibull:shape=0.7", "weibull:scale=0", "weibull:shape=0,scale=1",
          "weibull:shape=nan,scale=1", "weibull:shape=-1,scale=1", "exponential:scale=1",
          "exponential:mtbf=1,shape=2", "exponential:mtbf=1,seed=x", "exponential:mtbf=1,per=node",
          "exponential:mtbf=1,replace=", "gamma:scale=1", "exponential:mtbf=5s,,seed"})
        EXPECT_THROW(Injection::parse(wrong), Error) << wrong;
}

TEST(Injection, LawsByInversion) {
    Draws draws(1);
    const double u[] = {0.5665615751722809, 0.7457817572627011, 0.9710027535867962, 0.4443592170557721};
    const double exponential[] = {4.1800276738517965, 6.847810787547518, 17.702772023863275,
                                  2.9381663368425603};
    const double weibull[] = {15.484607940459192, 31.34344854508821, 121.73557948221872, 9.357976687424232};
    for (int i = 0; i < 4; ++i) {
        const double drawn = draws.next();
        EXPECT_DOUBLE_EQ(drawn, u[i]);
        EXPECT_NEAR(Injection::parse("exponential:mtbf=5s").time_of(drawn), exponential[i], 1e-12);
        EXPECT_NEAR(Injection::parse("weibull:shape=0.7,scale=20").time_of(drawn), weibull[i], 1e-11);
    }
    // The median of Weibull's law, and its ends.
    EXPECT_NEAR(Injection::parse("weibull:shape=0.7,scale=20").time_of(0.5), 11.847802259042675, 1e-12);
    EXPECT_EQ(Injection::parse("weibull:shape=0.7,scale=20").time_of(0), 0);
    EXPECT_TRUE(std::isfinite(Injection::parse("exponential:mtbf=5s").time_of(1 - 0x1p-53)));
}

const std::vector<Process> kFour = {{0, false, 10}, {0, true, 11}, {1, false, 12}, {1, true, 13}};

// One failure after the other, whoever it hits: times are sums of the draws, and who is drawn, too.
TEST(Injector, OfTheWholeJob) {
    Injector injector(Injection::parse("exponential:mtbf=5s,seed=1"), 0);
    EXPECT_FALSE(injector.due(1'000'000, kFour));
    injector.begin(1000);
    EXPECT_FALSE(injector.due(1000 + 4179, kFour));
    auto who = injector.due(1000 + 4180, kFour);
    ASSERT_TRUE(who);
    EXPECT_EQ(who->pid, kFour[static_cast<size_t>(0.7457817572627011 * 4)].pid);
    EXPECT_FALSE(injector.due(1000 + 4200, kFour)) << "it is being killed";
    EXPECT_EQ(injector.due(1000 + 4680, kFour), who) << "nobody was";
    injector.killed(who->pid);
    EXPECT_EQ(injector.count(), 1u);
    // From the first failure on, however late it was.
    EXPECT_FALSE(injector.due(1000 + 4180 + 17702, kFour));
    who = injector.due(1000 + 4180 + 17703, kFour);
    ASSERT_TRUE(who);
    const std::vector<Process> left = {kFour[0], kFour[1], kFour[2]};
    EXPECT_EQ(who->pid, left[static_cast<size_t>(0.4443592170557721 * 3)].pid) << "the dead do not die again";
}

constexpr int64_t kBegin = 1'000;  // as of a clock that has run for a while

TEST(Injector, AnotherLifeDrawsOtherNumbers) {
    const Injection what = Injection::parse("exponential:mtbf=5s,seed=1");
    Injector other(what, 1);
    other.begin(kBegin);
    Injector same(what, 0);
    same.begin(kBegin);
    EXPECT_FALSE(same.due(kBegin + 674, kFour));
    EXPECT_FALSE(other.due(kBegin + 673, kFour));
    EXPECT_TRUE(other.due(kBegin + 674, kFour)) << "0.12603102042098713 is drawn";
}

// A process has its time for itself: a copy takes it along to its rank's place, a renewal leaves it alone.
TEST(Injector, OfEachProcess) {
    Injector injector(Injection::parse("weibull:shape=1,scale=1000,seed=5,per=process"), 0);
    injector.begin(kBegin);
    std::vector<int64_t> died(4, -1);
    std::vector<Process> living = kFour;
    for (int64_t now = kBegin; now < 20'000'000 && injector.count() < 1; now += 500)
        if (auto who = injector.due(now, living)) {
            injector.killed(who->pid);
            died[static_cast<size_t>(who->pid - 10)] = now;
        }
    EXPECT_EQ(std::count(died.begin(), died.end(), -1), 3);
    const auto first = static_cast<int32_t>(
        std::find_if(died.begin(), died.end(), [](int64_t at) { return at >= 0; }) - died.begin());
    // Renewed: other processes lead, and the same times are left.
    Injector again(Injection::parse("weibull:shape=1,scale=1000,seed=5,per=process"), 0);
    again.begin(kBegin);
    EXPECT_FALSE(again.due(kBegin, kFour));
    std::vector<Process> renewed = {{0, false, 20}, {0, true, 11}, {1, false, 22}, {1, true, 13}};
    const int64_t when = died[static_cast<size_t>(first)];
    EXPECT_FALSE(again.due(when - 500, renewed));
    auto who = again.due(when, renewed);
    ASSERT_TRUE(who);
    EXPECT_EQ(who->rank, kFour[static_cast<size_t>(first)].rank);
    EXPECT_EQ(who->copy, kFour[static_cast<size_t>(first)].copy);
}

TEST(Injector, ACopyTakesItsTimeAlong) {
    const Injection what = Injection::parse("exponential:mtbf=1000s,seed=11,per=process");
    auto death_of = [&](bool leads) {
        Injector injector(what, 0);
        injector.begin(kBegin);
        EXPECT_FALSE(injector.due(kBegin, {{0, false, 10}, {0, true, 11}}));
        injector.leads(0);
        for (int64_t now = kBegin + 1; now < 100'000'000; now += 1000)
            if (auto who = injector.due(now, {{0, !leads, 11}})) return now;
        return int64_t{0};
    };
    Injector alone(what, 0);
    alone.begin(kBegin);
    EXPECT_FALSE(alone.due(kBegin, {{0, false, 10}, {0, true, 11}}));
    int64_t copys = 0;
    for (int64_t now = kBegin + 1; copys == 0 && now < 100'000'000; now += 1000)
        if (alone.due(now, {{0, true, 11}})) copys = now;
    EXPECT_GT(copys, 0);
    EXPECT_EQ(death_of(true), copys);
}

}  // namespace
}  // namespace fermata::root
