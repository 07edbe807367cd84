// Topologies: the real library makes them (it may reorder), all questions are answered from the description.
#include "front/objects/topology.h"

#include "front/calls/comm_create.h"
#include "front/objects/api.h"
#include "front/objects/grids.h"

namespace fermata::front {
namespace {

Topology* topology_of(CommObject* comm, int kind) {
    return comm != nullptr && comm->topology != nullptr && comm->topology->kind == kind ? comm->topology
                                                                                        : nullptr;
}

// A communicator with a topology of this kind; without one `topology` is null and `rc` what the call returns.
struct Placed {
    int rc;
    CommObject* object;
    const Topology* topology;
};
Placed placed(Call& call, Comm comm, int kind) {
    CommObject* object = find(comm);
    if (object == nullptr) return {call.finish(FM_ERR_COMM), nullptr, nullptr};
    const Topology* topology = topology_of(object, kind);
    return {topology == nullptr ? call.finish(comm, FM_ERR_TOPOLOGY) : FM_SUCCESS, object, topology};
}

// Neighbours of this process in a distributed graph, as the library sorted them: neighbourhood collectives
// use its order.
int read_dist_graph(CommObject* comm) {
    RealComm real{comm->real};
    int in = 0, out = 0, weighted = 0;
    if (int rc = LOWER(Dist_graph_neighbors_count)(real, &in, &out, &weighted)) return rc;
    auto* topology = fm_new<Topology>();
    topology->kind = FM_DIST_GRAPH;
    topology->weighted = weighted != 0;
    // One word more than needed: an empty vector has no address, and libraries look at the pointer.
    topology->sources.assign(static_cast<size_t>(in) + 1, 0);
    topology->source_weights = topology->sources;
    topology->destinations.assign(static_cast<size_t>(out) + 1, 0);
    topology->destination_weights = topology->destinations;
    int rc = LOWER(Dist_graph_neighbors)(
        real, in, topology->sources.data(), weighted ? topology->source_weights.data() : FM_UNWEIGHTED, out,
        topology->destinations.data(), weighted ? topology->destination_weights.data() : FM_UNWEIGHTED);
    for (Vec<int>* list : {&topology->sources, &topology->source_weights, &topology->destinations,
                           &topology->destination_weights})
        list->pop_back();
    comm->topology = topology;
    return rc;
}

int create_dist_graph(Call& call, CommObject* parent, Comm* newcomm, auto&& make) {
    if (logged::on()) logged::refuse("MPI_Dist_graph_create");
    int read = FM_SUCCESS;
    int rc = create_comm(call, parent, false, newcomm, {}, make,
                         [&read](CommObject* made) { read = read_dist_graph(made); });
    return rc != FM_SUCCESS ? rc : read;
}

// The first so many processes.
Asked first_of(const CommObject* parent, int64_t count) noexcept {
    return {parent->rank < count ? 0 : FM_UNDEFINED, parent->rank};
}

// A number that is the same for all who differ only in the dimensions that remain.
int dropped_place(const Topology& cart, int rank, const int* remain_dims) noexcept {
    Vec<int> coords(cart.dims.size() + 1);
    cart_coords_of(cart, rank, coords.data());
    int place = 0;
    for (size_t i = 0; i < cart.dims.size(); i++)
        if (remain_dims[i] == 0) place = place * cart.dims[i] + coords[i];
    return place;
}

void copy_list(const Vec<int>& from, int room, int* to) {
    for (size_t i = 0; i < from.size() && static_cast<int>(i) < room; i++) to[i] = from[i];
}

}  // namespace

extern "C" {

int fm_Dims_create(int nnodes, int ndims, int* dims) {
    Call call("MPI_Dims_create");
    Grid grid{nnodes, ndims, {}, {}};
    auto bytes = static_cast<size_t>(ndims) * sizeof *dims;
    bool kept = dims != nullptr && ndims > 0 && ndims <= Grid::kMost;
    if (kept && grid_known(nnodes, ndims, dims)) return FM_SUCCESS;
    if (kept) __builtin_memcpy(grid.asked, dims, bytes);
    int rc = LOWER(Dims_create)(nnodes, ndims, dims);
    if (rc != FM_SUCCESS || !kept) return call.finish(rc);
    __builtin_memcpy(grid.dims, dims, bytes);
    grid_note(grid);
    return FM_SUCCESS;
}

int fm_Topo_test(Comm comm, int* status) {
    Call call("MPI_Topo_test");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    *status = object->topology != nullptr ? object->topology->kind : FM_UNDEFINED;
    return FM_SUCCESS;
}

int fm_Cart_create(Comm comm_old, int ndims, const int* dims, const int* periods, int reorder,
                   Comm* comm_cart) {
    Call call("MPI_Cart_create");
    CommObject* parent = find(comm_old);
    if (parent == nullptr) return call.finish(FM_ERR_COMM);
    if (parent->inter) return call.finish(comm_old, FM_ERR_COMM);
    if (ndims < 0) return call.finish(comm_old, FM_ERR_DIMS);
    int64_t places = 1;
    for (int i = 0; i < ndims; i++) places *= dims[i];
    return create_comm(
        call, parent, false, comm_cart, first_of(parent, places),
        [=](RealComm* real) {
            return LOWER(Cart_create)(RealComm{parent->real}, ndims, dims, periods, reorder, real);
        },
        [=](CommObject* made) {
            made->topology = fm_new<Topology>();
            made->topology->kind = FM_CART;
            made->topology->dims.assign(dims, dims + ndims);
            for (int i = 0; i < ndims; i++) made->topology->periods.push_back(periods[i] != 0);
        });
}

int fm_Cart_sub(Comm comm, const int* remain_dims, Comm* newcomm) {
    Call call("MPI_Cart_sub");
    CommObject* parent = find(comm);
    if (parent == nullptr) return call.finish(FM_ERR_COMM);
    const Topology* cart = topology_of(parent, FM_CART);
    if (cart == nullptr) return call.finish(comm, FM_ERR_TOPOLOGY);
    return create_comm(
        call, parent, false, newcomm, {dropped_place(*cart, parent->rank, remain_dims), parent->rank},
        [=](RealComm* real) { return LOWER(Cart_sub)(RealComm{parent->real}, remain_dims, real); },
        [=](CommObject* made) {
            made->topology = fm_new<Topology>();
            made->topology->kind = FM_CART;
            for (size_t i = 0; i < cart->dims.size(); i++)
                if (remain_dims[i]) {
                    made->topology->dims.push_back(cart->dims[i]);
                    made->topology->periods.push_back(cart->periods[i]);
                }
        });
}

int fm_Cartdim_get(Comm comm, int* ndims) {
    Call call("MPI_Cartdim_get");
    auto [rc, object, cart] = placed(call, comm, FM_CART);
    if (cart == nullptr) return rc;
    *ndims = static_cast<int>(cart->dims.size());
    return FM_SUCCESS;
}

int fm_Cart_get(Comm comm, int maxdims, int* dims, int* periods, int* coords) {
    Call call("MPI_Cart_get");
    auto [rc, object, cart] = placed(call, comm, FM_CART);
    if (cart == nullptr) return rc;
    if (static_cast<size_t>(maxdims < 0 ? 0 : maxdims) < cart->dims.size())
        return call.finish(comm, FM_ERR_ARG);
    copy_list(cart->dims, maxdims, dims);
    copy_list(cart->periods, maxdims, periods);
    cart_coords_of(*cart, object->rank, coords);
    return FM_SUCCESS;
}

int fm_Cart_rank(Comm comm, const int* coords, int* rank) {
    Call call("MPI_Cart_rank");
    auto [rc, object, cart] = placed(call, comm, FM_CART);
    if (cart == nullptr) return rc;
    int found = cart_rank_of(*cart, coords);
    if (found < 0) return call.finish(comm, FM_ERR_ARG);
    *rank = found;
    return FM_SUCCESS;
}

int fm_Cart_coords(Comm comm, int rank, int maxdims, int* coords) {
    Call call("MPI_Cart_coords");
    auto [rc, object, cart] = placed(call, comm, FM_CART);
    if (cart == nullptr) return rc;
    if (rank < 0 || rank >= object->size) return call.finish(comm, FM_ERR_RANK);
    if (static_cast<size_t>(maxdims < 0 ? 0 : maxdims) < cart->dims.size())
        return call.finish(comm, FM_ERR_ARG);
    cart_coords_of(*cart, rank, coords);
    return FM_SUCCESS;
}

int fm_Cart_shift(Comm comm, int direction, int disp, int* rank_source, int* rank_dest) {
    Call call("MPI_Cart_shift");
    auto [rc, object, cart] = placed(call, comm, FM_CART);
    if (cart == nullptr) return rc;
    if (direction < 0 || static_cast<size_t>(direction) >= cart->dims.size())
        return call.finish(comm, FM_ERR_ARG);
    auto along = static_cast<size_t>(direction);
    Vec<int> coords(cart->dims.size());
    cart_coords_of(*cart, object->rank, coords.data());
    int here = coords[along];
    auto neighbour = [&, cart = cart](int64_t step) {
        int64_t at = here + step;
        if (cart->periods[along]) {
            at %= cart->dims[along];
            if (at < 0) at += cart->dims[along];
        } else if (at < 0 || at >= cart->dims[along]) {
            return FM_PROC_NULL;
        }
        coords[along] = static_cast<int>(at);
        return cart_rank_of(*cart, coords.data());
    };
    *rank_source = neighbour(-static_cast<int64_t>(disp));
    *rank_dest = neighbour(disp);
    return FM_SUCCESS;
}

// No reordering is known to be better: the identity is a legal answer.
int fm_Cart_map(Comm comm, int ndims, const int* dims, const int* periods, int* newrank) {
    Call call("MPI_Cart_map");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    int64_t nodes = 1;
    for (int i = 0; i < ndims; i++) nodes *= dims[i];
    if (ndims < 0 || nodes < 1) return call.finish(comm, FM_ERR_DIMS);
    if (nodes > object->size) return call.finish(comm, FM_ERR_DIMS);
    *newrank = object->rank < nodes ? object->rank : FM_UNDEFINED;
    return FM_SUCCESS;
}

int fm_Graph_map(Comm comm, int nnodes, const int* index, const int* edges, int* newrank) {
    Call call("MPI_Graph_map");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    if (nnodes < 1 || nnodes > object->size) return call.finish(comm, FM_ERR_ARG);
    *newrank = object->rank < nnodes ? object->rank : FM_UNDEFINED;
    return FM_SUCCESS;
}

int fm_Graph_create(Comm comm_old, int nnodes, const int* index, const int* edges, int reorder,
                    Comm* comm_graph) {
    Call call("MPI_Graph_create");
    CommObject* parent = find(comm_old);
    if (parent == nullptr) return call.finish(FM_ERR_COMM);
    if (parent->inter) return call.finish(comm_old, FM_ERR_COMM);
    if (nnodes < 0 || nnodes > parent->size) return call.finish(comm_old, FM_ERR_ARG);
    return create_comm(
        call, parent, false, comm_graph, first_of(parent, nnodes),
        [=](RealComm* real) {
            return LOWER(Graph_create)(RealComm{parent->real}, nnodes, index, edges, reorder, real);
        },
        [=](CommObject* made) {
            made->topology = fm_new<Topology>();
            made->topology->kind = FM_GRAPH;
            made->topology->index.assign(index, index + nnodes);
            if (nnodes > 0) made->topology->edges.assign(edges, edges + index[nnodes - 1]);
        });
}

int fm_Graphdims_get(Comm comm, int* nnodes, int* nedges) {
    Call call("MPI_Graphdims_get");
    auto [rc, object, graph] = placed(call, comm, FM_GRAPH);
    if (graph == nullptr) return rc;
    *nnodes = static_cast<int>(graph->index.size());
    *nedges = static_cast<int>(graph->edges.size());
    return FM_SUCCESS;
}

int fm_Graph_get(Comm comm, int maxindex, int maxedges, int* index, int* edges) {
    Call call("MPI_Graph_get");
    auto [rc, object, graph] = placed(call, comm, FM_GRAPH);
    if (graph == nullptr) return rc;
    copy_list(graph->index, maxindex, index);
    copy_list(graph->edges, maxedges, edges);
    return FM_SUCCESS;
}

int fm_Graph_neighbors_count(Comm comm, int rank, int* nneighbors) {
    Call call("MPI_Graph_neighbors_count");
    auto [rc, object, graph] = placed(call, comm, FM_GRAPH);
    if (graph == nullptr) return rc;
    if (rank < 0 || static_cast<size_t>(rank) >= graph->index.size()) return call.finish(comm, FM_ERR_RANK);
    auto at = static_cast<size_t>(rank);
    *nneighbors = graph->index[at] - (at == 0 ? 0 : graph->index[at - 1]);
    return FM_SUCCESS;
}

int fm_Graph_neighbors(Comm comm, int rank, int maxneighbors, int* neighbors) {
    Call call("MPI_Graph_neighbors");
    auto [rc, object, graph] = placed(call, comm, FM_GRAPH);
    if (graph == nullptr) return rc;
    if (rank < 0 || static_cast<size_t>(rank) >= graph->index.size()) return call.finish(comm, FM_ERR_RANK);
    auto at = static_cast<size_t>(rank);
    int from = at == 0 ? 0 : graph->index[at - 1];
    for (int i = from; i < graph->index[at] && i - from < maxneighbors; i++)
        neighbors[i - from] = graph->edges[static_cast<size_t>(i)];
    return FM_SUCCESS;
}

int fm_Dist_graph_create(Comm comm_old, int n, const int* sources, const int* degrees,
                         const int* destinations, const int* weights, Info info, int reorder,
                         Comm* comm_dist_graph) {
    Call call("MPI_Dist_graph_create");
    CommObject* parent = find(comm_old);
    if (parent == nullptr) return call.finish(FM_ERR_COMM);
    if (parent->inter) return call.finish(comm_old, FM_ERR_COMM);
    return create_dist_graph(call, parent, comm_dist_graph, [=](RealComm* real) {
        TempInfo hints(info);
        return LOWER(Dist_graph_create)(RealComm{parent->real}, n, sources, degrees, destinations, weights,
                                        hints, reorder, real);
    });
}

int fm_Dist_graph_create_adjacent(Comm comm_old, int indegree, const int* sources, const int* sourceweights,
                                  int outdegree, const int* destinations, const int* destweights, Info info,
                                  int reorder, Comm* comm_dist_graph) {
    Call call("MPI_Dist_graph_create_adjacent");
    CommObject* parent = find(comm_old);
    if (parent == nullptr) return call.finish(FM_ERR_COMM);
    if (parent->inter) return call.finish(comm_old, FM_ERR_COMM);
    return create_dist_graph(call, parent, comm_dist_graph, [=](RealComm* real) {
        TempInfo hints(info);
        return LOWER(Dist_graph_create_adjacent)(RealComm{parent->real}, indegree, sources, sourceweights,
                                                 outdegree, destinations, destweights, hints, reorder, real);
    });
}

int fm_Dist_graph_neighbors_count(Comm comm, int* indegree, int* outdegree, int* weighted) {
    Call call("MPI_Dist_graph_neighbors_count");
    auto [rc, object, graph] = placed(call, comm, FM_DIST_GRAPH);
    if (graph == nullptr) return rc;
    *indegree = static_cast<int>(graph->sources.size());
    *outdegree = static_cast<int>(graph->destinations.size());
    *weighted = graph->weighted;
    return FM_SUCCESS;
}

int fm_Dist_graph_neighbors(Comm comm, int maxindegree, int* sources, int* sourceweights, int maxoutdegree,
                            int* destinations, int* destweights) {
    Call call("MPI_Dist_graph_neighbors");
    auto [rc, object, graph] = placed(call, comm, FM_DIST_GRAPH);
    if (graph == nullptr) return rc;
    copy_list(graph->sources, maxindegree, sources);
    copy_list(graph->destinations, maxoutdegree, destinations);
    auto wanted = [graph = graph](const int* list) {
        return graph->weighted && list != nullptr && list != FM_UNWEIGHTED && list != FM_WEIGHTS_EMPTY;
    };
    if (wanted(sourceweights)) copy_list(graph->source_weights, maxindegree, sourceweights);
    if (wanted(destweights)) copy_list(graph->destination_weights, maxoutdegree, destweights);
    return FM_SUCCESS;
}

}  // extern "C"
}  // namespace fermata::front
