// Phases of ranks, merged in any grouping, are the phase of who is furthest behind.
#include "tree/restart_phase.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace fermata::tree {
namespace {

using wire::Phase;
using wire::RestartPhase;

TEST(RestartPhase, TheLowestWithItsRanks) {
    RestartPhases<int> phases;
    EXPECT_FALSE(phases.furthest_behind());
    phases.said(0, {RestartPhase::rebuild, 0});
    phases.said(1, {RestartPhase::threads, 9});
    phases.said(2, {RestartPhase::threads, 4});
    EXPECT_EQ(phases.furthest_behind(), (Phase{RestartPhase::threads, 4, 2, 3}));
    phases.said(2, {RestartPhase::process, 4});
    EXPECT_EQ(phases.furthest_behind(), (Phase{RestartPhase::threads, 9, 1, 3}));
    phases.gone(1);
    EXPECT_EQ(phases.furthest_behind(), (Phase{RestartPhase::process, 4, 1, 2}));
    phases.clear();
    EXPECT_FALSE(phases.furthest_behind());
}

TEST(RestartPhase, GroupsOfGroupsAreTheSame) {
    std::mt19937 random(3);
    for (int turn = 0; turn < 500; ++turn) {
        std::vector<Phase> all;
        RestartPhases<size_t> flat;
        for (size_t rank = 0; rank < 1 + random() % 12; ++rank) {
            all.push_back(
                {RestartPhase{static_cast<uint32_t>(1 + random() % 6)}, static_cast<int32_t>(rank)});
            flat.said(rank, all.back());
        }
        // Any two are merged, until one is left.
        while (all.size() > 1) {
            std::shuffle(all.begin(), all.end(), random);
            Phase last = all.back();
            all.pop_back();
            all.back() = merged(all.back(), last);
        }
        EXPECT_EQ(flat.furthest_behind(), all[0]);
    }
}

}  // namespace
}  // namespace fermata::tree
