// Parts of arrays against a slow and obvious way: every element is looked up by itself.
#include "api/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace fermata::api {
namespace {

// Global index of every element of a part, in order.
std::vector<Index> globals(const Grid& grid) {
    std::vector<Index> all;
    const size_t n = grid.dimensions();
    const int64_t count = grid.elements();
    for (int64_t e = 0; e < count; ++e) {
        Index index(n);
        int64_t rest = e;
        for (size_t d = n; d-- > 0;) {
            index[d] = grid.offset[d] + rest % grid.extent[d] * grid.stride[d];
            rest /= grid.extent[d];
        }
        all.push_back(index);
    }
    return all;
}

Grid drawn(std::mt19937& draw, const Index& shape) {
    Grid grid;
    for (int64_t n : shape) {
        int64_t stride = 1 + draw() % 4, offset = draw() % n;
        int64_t most = (n - 1 - offset) / stride + 1;
        grid.offset.push_back(offset);
        grid.stride.push_back(stride);
        grid.extent.push_back(draw() % 9 == 0 ? draw() % (most + 1) : most);
    }
    return grid;
}

TEST(Grid, CommonElementsAreThoseOfTheSlowWay) {
    std::mt19937 draw(1);
    int with_some = 0;
    for (int round = 0; round < 10000; ++round) {
        Index shape;
        for (size_t d = 0, n = 1 + draw() % 4; d < n; ++d) shape.push_back(1 + draw() % 9);
        Grid to = drawn(draw, shape), from = drawn(draw, shape);
        ASSERT_EQ(why_no_part(to, shape), "");
        std::map<Index, int64_t> place;
        std::vector<Index> theirs = globals(from), mine = globals(to);
        for (size_t i = 0; i < theirs.size(); ++i) place[theirs[i]] = static_cast<int64_t>(i);
        std::vector<int64_t> expected(mine.size(), -1), found(mine.size(), -1);
        for (size_t i = 0; i < mine.size(); ++i)
            if (auto at = place.find(mine[i]); at != place.end()) expected[i] = at->second;
        for_each_common(to, from, [&](int64_t first, int64_t source, int64_t count) {
            for (int64_t i = 0; i < count; ++i) {
                ASSERT_EQ(found.at(static_cast<size_t>(first + i)), -1) << "twice";
                found[static_cast<size_t>(first + i)] = source + i;
            }
        });
        ASSERT_EQ(found, expected) << "round " << round;
        with_some += std::any_of(found.begin(), found.end(), [](int64_t at) { return at >= 0; });
    }
    EXPECT_GT(with_some, 2000);
}

TEST(Grid, AWholeBlockIsOneRunPerRow) {
    Grid whole{{0, 0}, {5, 7}, {1, 1}};
    int runs = 0;
    for_each_common(whole, whole, [&](int64_t to, int64_t from, int64_t count) {
        EXPECT_EQ(to, from);
        EXPECT_EQ(count, 7);
        ++runs;
    });
    EXPECT_EQ(runs, 5);
}

TEST(Grid, WhatCannotBeIsNamed) {
    const Index shape{10, 10};
    EXPECT_EQ(why_no_part({{0, 0}, {10, 10}, {1, 1}}, shape), "");
    EXPECT_EQ(why_no_part({{99, 0}, {0, 10}, {1, 1}}, shape), "");  // empty
    EXPECT_NE(why_no_part({{1, 0}, {10, 10}, {1, 1}}, shape), "");
    EXPECT_NE(why_no_part({{-1, 0}, {1, 1}, {1, 1}}, shape), "");
    EXPECT_NE(why_no_part({{0, 0}, {-1, 1}, {1, 1}}, shape), "");
    EXPECT_NE(why_no_part({{0, 0}, {1, 1}, {0, 1}}, shape), "");
    EXPECT_NE(why_no_part({{1, 0}, {6, 1}, {2, 1}}, shape), "");
    EXPECT_EQ(why_no_part({{1, 0}, {5, 1}, {2, 1}}, shape), "");
    // Numbers whose products do not fit.
    EXPECT_NE(why_no_part({{0, 0}, {INT64_MAX, INT64_MAX}, {1, 1}}, shape), "");
    EXPECT_NE(why_no_part({{1, 0}, {2, 1}, {INT64_MAX, 1}}, shape), "");
    EXPECT_EQ(product({INT64_MAX, 2}), -1);
    EXPECT_EQ(product({0, INT64_MAX, INT64_MAX}), 0);
}

TEST(Coverage, CountsEveryElementOnce) {
    std::mt19937 draw(2);
    for (int round = 0; round < 300; ++round) {
        const int64_t n = 1 + draw() % 300;
        Coverage coverage(n);
        std::vector<bool> there(static_cast<size_t>(n));
        for (int i = 0; i < 20; ++i) {
            int64_t first = draw() % n, count = 1 + draw() % (n - first);
            coverage.add(first, count);
            for (int64_t at = first; at < first + count; ++at) there[static_cast<size_t>(at)] = true;
            ASSERT_EQ(coverage.missing(), std::count(there.begin(), there.end(), false));
        }
    }
}

}  // namespace
}  // namespace fermata::api
