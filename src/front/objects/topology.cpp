// The real counterpart of a topology.
#include "front/objects/topology.h"

#include "front/objects/api.h"

namespace fermata::front {

int topology_apply(const Topology& topology, RealComm base, RealComm* made) noexcept {
    switch (topology.kind) {
        case FM_CART:
            return LOWER(Cart_create)(base, static_cast<int>(topology.dims.size()), topology.dims.data(),
                                      topology.periods.data(), 0, made);
        case FM_GRAPH:
            return LOWER(Graph_create)(base, static_cast<int>(topology.index.size()), topology.index.data(),
                                       topology.edges.data(), 0, made);
        case FM_DIST_GRAPH: {
            // Empty lists with weights need the standard's marker instead of a null pointer.
            auto weights = [&topology](const Vec<int>& list) -> const int* {
                if (!topology.weighted) return FM_UNWEIGHTED;
                return list.empty() ? FM_WEIGHTS_EMPTY : list.data();
            };
            return LOWER(Dist_graph_create_adjacent)(
                base, static_cast<int>(topology.sources.size()), topology.sources.data(),
                weights(topology.source_weights), static_cast<int>(topology.destinations.size()),
                topology.destinations.data(), weights(topology.destination_weights), RealInfo{}, 0, made);
        }
        default:
            return FM_ERR_TOPOLOGY;
    }
}

}  // namespace fermata::front
