// Facts about communicators that the generated bodies ask for: internal values only, the same for every ABI.
#include "front/abi/common.h"

namespace fermata::abi {
namespace {

void neighbours(Comm comm, int* in, int* out) {
    int topology = FM_UNDEFINED, a = 0, weighted = 0, rank = 0;
    *in = *out = 0;
    if (fm_Topo_test(comm, &topology) != FM_SUCCESS) return;
    if (topology == FM_CART && fm_Cartdim_get(comm, &a) == FM_SUCCESS)
        *in = *out = 2 * a;
    else if (topology == FM_GRAPH && fm_Comm_rank(comm, &rank) == FM_SUCCESS &&
             fm_Graph_neighbors_count(comm, rank, &a) == FM_SUCCESS)
        *in = *out = a;
    else if (topology == FM_DIST_GRAPH)
        fm_Dist_graph_neighbors_count(comm, in, out, &weighted);
}

}  // namespace

int peers(Comm comm) {
    int inter = 0, n = 0;
    if (fm_Comm_test_inter(comm, &inter) != FM_SUCCESS) return 0;
    return (inter != 0 ? fm_Comm_remote_size(comm, &n) : fm_Comm_size(comm, &n)) == FM_SUCCESS ? n : 0;
}
int indegree(Comm comm) {
    int in, out;
    neighbours(comm, &in, &out);
    return in;
}
int outdegree(Comm comm) {
    int in, out;
    neighbours(comm, &in, &out);
    return out;
}
bool at_root(Comm comm, int root) {
    int rank = FM_UNDEFINED;
    return fm_Comm_rank(comm, &rank) == FM_SUCCESS && rank == root;
}
int cart_ndims(Comm comm) {
    int n = 0;
    return fm_Cartdim_get(comm, &n) == FM_SUCCESS ? n : 0;
}

}  // namespace fermata::abi
