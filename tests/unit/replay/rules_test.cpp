// Every rule of the protocol taken away once: its small program notices. With all rules none goes wrong.
#include <gtest/gtest.h>

#include <set>

#include "small.h"

namespace fermata::replay::test {
namespace {

constexpr uint64_t kRuns = 4000;  // at most, until it is noticed
constexpr uint64_t kSound = 400;

class Rules : public testing::TestWithParam<Small> {};

TEST_P(Rules, IsMissed) {
    const Small& small = GetParam();
    for (uint64_t k = 0; k < kRuns; k++) {
        Case one = small_case(small, k, small.away);
        if (!Job(one.program, one.plan, one.seed).run().fault.empty()) return;
    }
    FAIL() << "nobody notices that " << small.name << " is away\n" << parse(small.ranks).text();
}

TEST_P(Rules, HoldsOtherwise) {
    const Small& small = GetParam();
    for (uint64_t k = 0; k < kSound; k++) {
        Case one = small_case(small, k, Rule::none);
        Result out = Job(one.program, one.plan, one.seed).run();
        ASSERT_EQ(out.fault, "") << "run " << k << "\n" << one.program.text();
        ASSERT_FALSE(out.rolled_back);
    }
}

TEST_P(Rules, HoldAtEveryMoment) {
    Sum sum;
    for (bool node : {false, true}) ASSERT_EQ(every_moment(GetParam(), 1, node, 1, &sum), "");
}

INSTANTIATE_TEST_SUITE_P(Each, Rules, testing::ValuesIn(small_programs()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(AllRules, HaveASmallProgram) {
    std::set<Rule> have;
    for (const Small& small : small_programs()) have.insert(small.away);
    EXPECT_EQ(have.size(), static_cast<size_t>(Rule::kCount) - 1);
}

}  // namespace
}  // namespace fermata::replay::test
