// One run as it is drawn, and sums over runs.
#pragma once

#include <string>

#include "job.h"

namespace fermata::replay::test {

struct Case {
    Program program;
    Plan plan;
    uint64_t seed;
};

inline Case random_case(uint64_t seed, uint64_t schedule) {
    std::mt19937_64 random(seed);
    Case one;
    one.program = random_program(random, 3 + static_cast<int>(random() % 18));
    one.seed = seed * 1000 + schedule;
    random.seed(one.seed);
    auto pick = [&](int below) { return static_cast<int>(random() % static_cast<uint64_t>(below)); };
    int share = pick(4);
    for (size_t i = 0; i < one.program.ranks.size(); i++) one.plan.replicated.push_back(pick(3) < share);
    one.plan.level_node = pick(2) == 0;
    one.plan.ring = 1 + static_cast<size_t>(pick(5));
    one.plan.kills = pick(4);
    one.plan.hops = pick(3);
    one.plan.drains = pick(3);
    if (pick(2) == 0) {
        one.plan.clones = pick(4);
        one.plan.kills = pick(6);
    }
    int often[] = {8, 20, 60};
    one.plan.rarely = often[pick(3)];
    one.plan.lazy = pick(5) < 2;
    if (pick(3) == 0) one.plan.log_bytes = 16u * static_cast<uint64_t>(1 + pick(3));
    return one;
}

struct Sum {
    uint64_t runs = 0;
    Result all;
    void add(const Result& one) {
        runs++;
        all.rolled_back = all.rolled_back || one.rolled_back;
        all.steps += one.steps;
        all.kills += one.kills;
        all.hops += one.hops;
        all.drains += one.drains;
        all.clones += one.clones;
        all.promotions += one.promotions;
        all.epochs += one.epochs;
        all.resent += one.resent;
        all.debts += one.debts;
        all.played += one.played;
        all.orphans += one.orphans;
    }
    std::string text() const {
        auto n = [](uint64_t count, const char* what) { return ", " + std::to_string(count) + " " + what; };
        return std::to_string(runs) + " runs" + n(all.steps, "steps") + n(all.kills, "deaths") +
               n(all.promotions, "promotions") + n(all.hops, "hops") + n(all.drains, "drains") +
               n(all.clones, "clones") + n(all.epochs, "epochs") + n(all.resent, "messages sent again") +
               n(all.debts, "debts") + n(all.played, "rings played") + n(all.orphans, "orphans");
    }
};

}  // namespace fermata::replay::test
