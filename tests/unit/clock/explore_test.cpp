// The CI slice of the explorer, the scenario programs, and the proof that each deliberate fault is noticed.
#include <gtest/gtest.h>

#include <thread>

#include "cases.h"
#include "scenarios.h"

namespace fermata::clock::test {
namespace {

// Seeds are cases: the same on every machine, so this cannot be flaky.
constexpr uint64_t kFirstSeed = 1, kPrograms = 1500;

TEST(Explore, random_programs_reach_safe_states_and_go_on) {
    Sum sum;
    for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kPrograms; seed++) {
        Case one = random_case(seed, {});
        Outcome out = World(one.program, one.plan, seed).run();
        ASSERT_EQ(out.fault, "") << "seed " << seed << "\n" << one.program.text();
        sum.add(out);
    }
    EXPECT_GT(sum.checkpoints, kPrograms * 2);
    EXPECT_GT(sum.restarts, kPrograms / 2);
    EXPECT_GT(sum.demands, 0u);
    EXPECT_GT(sum.licences, 0u);
}

TEST(Explore, scenarios) {
    for (const Scenario& s : kScenarios) {
        Program program = parse(s.text);
        for (uint64_t seed = 1; seed <= 60; seed++) {
            Plan plan;
            plan.early_return = seed % 3 != 0;
            plan.nodes = int(seed % 3);
            plan.demand_delay_ns = seed % 2 ? 0 : 50'000;
            Outcome out = World(program, plan, seed).run();
            ASSERT_EQ(out.fault, "") << s.name << " seed " << seed << "\n" << program.text();
        }
    }
}

Program scenario(const std::string& name) {
    for (const Scenario& s : kScenarios)
        if (s.name == name) return parse(s.text);
    throw std::runtime_error("no scenario " + name);
}

// How many of `seeds` runs of a scenario the checks object to.
int objections(const Program& program, Plan plan, uint64_t seeds) {
    plan.step_limit = 20'000;
    plan.aborts = false;
    plan.check_minimal = false;
    int bad = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        plan.nodes = int(seed % 3);
        bad += World(program, plan, seed).run().fault != "";
    }
    return bad;
}

TEST(Faults, no_demand_deadlocks) {
    Plan plan;
    EXPECT_EQ(objections(scenario("message_behind_a_collective"), plan, 300), 0);
    plan.fault_no_demand = true;
    EXPECT_GT(objections(scenario("message_behind_a_collective"), plan, 300), 0);
}

TEST(Faults, park_at_exit_deadlocks_even_where_demands_are_not_needed) {
    Plan plan;
    plan.fault_no_demand = true;
    EXPECT_EQ(objections(scenario("park_at_exit"), plan, 200), 0);
    plan.fault_park_at_exit = true;
    EXPECT_GT(objections(scenario("park_at_exit"), plan, 200), 0);
}

TEST(Faults, count_at_start_never_ends) {
    Plan plan;
    plan.checkpoints = 1;
    EXPECT_EQ(objections(scenario("skewed_nonblocking"), plan, 20), 0);
    plan.fault_count_at_start = true;
    EXPECT_GT(objections(scenario("skewed_nonblocking"), plan, 20), 0);
}

// The rest shows on random programs.
void expect_noticed(const char* fault, uint64_t programs) {
    Plan plan;
    plan.step_limit = 50'000;
    ASSERT_TRUE(set_fault(plan, fault));
    int bad = 0;
    for (uint64_t seed = 1; seed <= programs && !bad; seed++) {
        Case one = random_case(seed, plan);
        bad += World(one.program, one.plan, seed).run().fault != "";
    }
    EXPECT_GT(bad, 0) << fault;
}

TEST(Faults, open_gate) { expect_noticed("open-gate", 20); }
TEST(Faults, any_version) { expect_noticed("any-version", 400); }
TEST(Faults, channels_out_of_order) { expect_noticed("reorder", 800); }
TEST(Faults, no_demand) { expect_noticed("no-demand", 400); }
TEST(Faults, count_at_start) { expect_noticed("count-at-start", 400); }

// The published algorithm is here for comparison only: it must work where it can, and fails where it is known
// to.
TEST(Comparison, published_algorithm_deadlocks_with_messages) {
    Plan plan;
    plan.protocol = Protocol::cc;
    EXPECT_EQ(objections(scenario("one_call"), plan, 40), 0);
    EXPECT_EQ(objections(scenario("threads"), plan, 10), 0);
    EXPECT_GT(objections(scenario("message_behind_a_collective"), plan, 300), 0);
    EXPECT_GT(objections(scenario("park_at_exit"), plan, 200), 0);
}

}  // namespace
}  // namespace fermata::clock::test
