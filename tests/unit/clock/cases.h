// From a seed to a program and a plan; the same everywhere, so that a seed names a case.
#pragma once

#include <algorithm>
#include <string>

#include "world.h"

namespace fermata::clock::test {

struct Case {
    Program program;
    Plan plan;
};

inline Case random_case(uint64_t seed, const Plan& overrides) {
    std::mt19937_64 random(seed);
    auto pick = [&](uint64_t below) { return random() % below; };
    Case one;
    Taste taste = random_taste(random);
    one.program = random_program(random, taste);
    one.plan = overrides;
    one.plan.early_return = pick(3) != 0;
    one.plan.nodes = int(std::min<uint64_t>(pick(4), uint64_t(taste.ranks)));
    const uint64_t delays[] = {0, 5'000, 50'000, 500'000};
    one.plan.demand_delay_ns = delays[pick(4)];
    return one;
}

// Names of the deliberate faults.
inline bool set_fault(Plan& plan, const std::string& name) {
    if (name == "open-gate")
        plan.fault_open_gate = true;
    else if (name == "any-version")
        plan.fault_any_version = true;
    else if (name == "no-demand")
        plan.fault_no_demand = true;
    else if (name == "reorder")
        plan.fault_reorder = true;
    else if (name == "park-at-exit")
        plan.fault_park_at_exit = true;
    else if (name == "count-at-start")
        plan.fault_count_at_start = true;
    else
        return false;
    return true;
}

struct Sum {
    uint64_t checkpoints = 0, aborted = 0, restarts = 0, steps = 0, extra = 0, raises = 0, demands = 0,
             licences = 0;
    void add(const Outcome& o) {
        checkpoints += uint64_t(o.checkpoints);
        aborted += uint64_t(o.aborted);
        restarts += uint64_t(o.restarts);
        steps += o.steps;
        extra += o.extra;
        raises += o.raises;
        demands += o.demands;
        licences += o.licences;
    }
    double per(uint64_t value) const { return double(value) / double(checkpoints ? checkpoints : 1); }
};

}  // namespace fermata::clock::test
