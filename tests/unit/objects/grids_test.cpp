#include <gtest/gtest.h>

#include "front/objects/topology.h"

namespace fermata::front {
namespace {

Topology grid(Vec<int> dims, Vec<int> periods) {
    Topology topology;
    topology.kind = mpi::FM_CART;
    topology.dims = dims;
    topology.periods = periods;
    return topology;
}

TEST(Grids, RanksAreRowMajor) {
    Topology cart = grid({2, 3, 4}, {0, 0, 0});
    for (int rank = 0; rank < 24; rank++) {
        int coords[3];
        cart_coords_of(cart, rank, coords);
        EXPECT_EQ(coords[0] * 12 + coords[1] * 4 + coords[2], rank);
        EXPECT_EQ(cart_rank_of(cart, coords), rank);
    }
}

TEST(Grids, OnlyPeriodicDimensionsWrap) {
    Topology cart = grid({3, 4}, {1, 0});
    const int wraps[] = {-1, 2}, far[] = {7, 0}, outside[] = {0, 4};
    EXPECT_EQ(cart_rank_of(cart, wraps), 2 * 4 + 2);
    EXPECT_EQ(cart_rank_of(cart, far), 1 * 4);
    EXPECT_EQ(cart_rank_of(cart, outside), -1);
}

TEST(Grids, NoDimensionsIsOneProcess) {
    Topology cart = grid({}, {});
    EXPECT_EQ(cart_rank_of(cart, nullptr), 0);
}

}  // namespace
}  // namespace fermata::front
