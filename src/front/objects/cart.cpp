// Cartesian grids: row-major, as MPI-4.0 8.4 fixes it for all libraries.
#include "front/objects/topology.h"

namespace fermata::front {

int cart_rank_of(const Topology& cart, const int* coords) noexcept {
    int rank = 0;
    for (size_t i = 0; i < cart.dims.size(); i++) {
        int at = coords[i], dim = cart.dims[i];
        if (at < 0 || at >= dim) {
            if (!cart.periods[i]) return -1;
            at %= dim;
            if (at < 0) at += dim;
        }
        rank = rank * dim + at;
    }
    return rank;
}

void cart_coords_of(const Topology& cart, int rank, int* coords) noexcept {
    for (size_t i = cart.dims.size(); i-- > 0;) {
        coords[i] = rank % cart.dims[i];
        rank /= cart.dims[i];
    }
}

}  // namespace fermata::front
