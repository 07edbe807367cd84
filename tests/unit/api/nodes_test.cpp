// Who keeps a copy for whom, over random machines.
#include "api/nodes.h"

#include <gtest/gtest.h>

#include <random>

namespace fermata::api {
namespace {

TEST(Nodes, EveryCopyIsOnAnotherNodeAndTravelsOnce) {
    std::mt19937 draw(3);
    for (int round = 0; round < 500; ++round) {
        const int size = 2 + static_cast<int>(draw() % 40), kinds = 2 + static_cast<int>(draw() % 6);
        std::vector<std::string> place;
        for (int r = 0; r < size; ++r) place.push_back(std::to_string(draw() % static_cast<unsigned>(kinds)));
        Nodes nodes(place);
        if (nodes.count() < 2) continue;
        std::vector<int> sent(place.size()), kept(place.size());
        for (int k = 0; k < nodes.rounds(); ++k) {
            std::vector<int> receiving(place.size());
            for (int r = 0; r < size; ++r) {
                const int to = nodes.sends_to(r, k);
                if (to < 0) continue;
                ASSERT_NE(nodes.node_of(to), nodes.node_of(r));
                ASSERT_EQ(nodes.receives_from(to, k), r);
                ASSERT_EQ(to, nodes.buddy(r));
                ++sent[static_cast<size_t>(r)];
                ++kept[static_cast<size_t>(to)];
                ASSERT_EQ(++receiving[static_cast<size_t>(to)], 1);
            }
        }
        for (int one : sent) ASSERT_EQ(one, 1);
    }
}

TEST(Nodes, EqualNodesKeepOneCopyForEachRank) {
    Nodes nodes({"a", "a", "b", "b", "c", "c"});
    EXPECT_EQ(nodes.count(), 3);
    EXPECT_EQ(nodes.rounds(), 1);
    for (int r = 0; r < 6; ++r) EXPECT_GE(nodes.receives_from(r, 0), 0);
    EXPECT_EQ(nodes.leader(1), 2);
}

TEST(Nodes, ALargeNodesCopiesAreDealtOut) {
    Nodes nodes({"a", "a", "a", "a", "b", "c"});
    std::vector<int> kept(6);
    for (int r = 0; r < 6; ++r) ++kept[static_cast<size_t>(nodes.buddy(r))];
    EXPECT_EQ(kept[4], 2);
    EXPECT_EQ(kept[5], 3);  // that of the rank on b, too
}

TEST(Nodes, OneNodeHasNoBuddies) {
    Nodes nodes({"a", "a"});
    EXPECT_EQ(nodes.count(), 1);
    EXPECT_EQ(nodes.buddy(0), -1);
    EXPECT_EQ(nodes.rounds(), 0);
}

}  // namespace
}  // namespace fermata::api
