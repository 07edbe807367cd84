#include "cases.h"

static void ask(MPI_Comm comm) {
    int a, sum = 0, one = rank + 1;
    MPI_Comm_size(comm, &a);
    MPI_Comm_rank(comm, &a);
    MPI_Comm_test_inter(comm, &a);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    SHOW1(sum);
}

void case_communicators(void) {
    MPI_Comm a, b, inter, merged, none;
    MPI_Group world, odd, remote;
    MPI_Info info, got;
    int result, n, range[1][3] = {{0, size - 1, 2}}, flag;
    char value[100];
    MPI_Comm_dup(WORLD, &a), ask(a);
    MPI_Comm_compare(WORLD, a, &result);
    MPI_Comm_compare(WORLD, WORLD, &result);
    MPI_Comm_compare(WORLD, MPI_COMM_SELF, &result);
    MPI_Comm_free(&a);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "false");
    MPI_Comm_dup_with_info(WORLD, info, &a), ask(a);
    MPI_Comm_set_info(a, info);
    MPI_Comm_get_info(a, &got);
    rec_off = 1;
    MPI_Info_get(got, "mpi_assert_no_any_tag", 99, value, &flag);
    MPI_Info_free(&got);
    rec_off = 0;
    MPI_Request request;
    MPI_Comm_idup(a, &b, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    ask(b);
    MPI_Comm_free(&b);
    if (MPI_Comm_idup_with_info(a, info, &b, &request) == MPI_SUCCESS) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        ask(b);
        MPI_Comm_free(&b);
    }
    MPI_Info_free(&info);
    MPI_Comm_split(a, rank % 2, -rank, &b), ask(b);
    MPI_Comm_compare(a, b, &result);
    MPI_Comm_split(a, rank == 0 ? MPI_UNDEFINED : 1, 0, &none);
    if (none != MPI_COMM_NULL) MPI_Comm_free(&none);
    MPI_Comm_split_type(a, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &none), ask(none);
    MPI_Comm_free(&none);
    MPI_Comm_split_type(a, MPI_UNDEFINED, rank, MPI_INFO_NULL, &none);
    MPI_Comm_group(a, &world);
    MPI_Group_range_incl(world, 1, range, &odd);
    MPI_Comm_create(a, odd, &none);
    if (none != MPI_COMM_NULL) ask(none), MPI_Comm_free(&none);
    if (rank % 2 == 0) {
        MPI_Comm_create_group(a, odd, 7, &none);
        ask(none);
        MPI_Comm_free(&none);
    }
    MPI_Intercomm_create(b, 0, a, rank % 2 ? (size - 1) / 2 * 2 : (size - 2) / 2 * 2 + 1, 5, &inter);
    MPI_Comm_remote_size(inter, &n);
    MPI_Comm_remote_group(inter, &remote);
    MPI_Group_size(remote, &n);
    MPI_Group_free(&remote);
    ask(inter);
    MPI_Comm_dup(inter, &none);
    MPI_Comm_compare(inter, none, &result);
    MPI_Comm_free(&none);
    MPI_Comm_split(inter, 0, rank, &none), ask(none);
    MPI_Comm_free(&none);
    MPI_Intercomm_merge(inter, rank % 2, &merged), ask(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&inter);
    MPI_Group_free(&odd);
    MPI_Group_free(&world);
    MPI_Comm_free(&b);
    MPI_Comm_free(&a);
    MPI_Comm_remote_size(WORLD, &n);
    MPI_Comm_remote_group(WORLD, &remote);
    MPI_Comm_size(MPI_COMM_NULL, &n);
    MPI_Comm_dup(MPI_COMM_NULL, &a);
    none = MPI_COMM_NULL;
    MPI_Comm_free(&none);
}

void case_groups(void) {
    MPI_Group world, a, b, c, d, e;
    int n, ranks[2] = {size - 1, 0}, one[1] = {0}, out[3] = {0, 1, MPI_PROC_NULL}, there[3],
           range[1][3] = {{size - 1, 0, -1}};
    MPI_Comm_group(WORLD, &world);
    MPI_Group_size(world, &n);
    MPI_Group_rank(world, &n);
    MPI_Group_incl(world, 2, ranks, &a);
    MPI_Group_excl(world, 1, one, &b);
    MPI_Group_rank(b, &n);
    MPI_Group_range_incl(world, 1, range, &c);
    range[0][0] = 0, range[0][1] = 0, range[0][2] = 1;
    MPI_Group_range_excl(world, 1, range, &d);
    MPI_Group_compare(world, c, &n);
    MPI_Group_compare(b, d, &n);
    MPI_Group_compare(a, b, &n);
    MPI_Group_compare(world, MPI_GROUP_EMPTY, &n);
    MPI_Group_translate_ranks(a, 3, out, world, there);
    out[1] = 0;
    MPI_Group_translate_ranks(world, 3, out, b, there);
    MPI_Group_union(b, a, &e), MPI_Group_size(e, &n), MPI_Group_rank(e, &n);
    MPI_Group_free(&e);
    MPI_Group_intersection(a, b, &e), MPI_Group_size(e, &n);
    MPI_Group_free(&e);
    MPI_Group_difference(world, b, &e), MPI_Group_size(e, &n);
    MPI_Group_free(&e);
    MPI_Group_difference(world, world, &e);
    MPI_Group_compare(e, MPI_GROUP_EMPTY, &n);
    MPI_Group_incl(world, 0, one, &e);
    one[0] = size;
    MPI_Group_incl(world, 1, one, &e);
    MPI_Group_size(MPI_GROUP_NULL, &n);
    MPI_Group_free(&a), MPI_Group_free(&b), MPI_Group_free(&c), MPI_Group_free(&d), MPI_Group_free(&world);
}

void case_topologies(void) {
    MPI_Comm cart, sub, graph, dist;
    int dims[2] = {0, 0}, periods[2] = {1, 0}, coords[2], got[2], flags[2], keep[2] = {1, 0}, a, b, index[64],
        edges[64], list[64];
    MPI_Dims_create(size, 2, dims);
    int six[3] = {0, 3, 0};
    MPI_Dims_create(12, 3, six);
    MPI_Dims_create(7, 3, six);
    MPI_Cart_create(WORLD, 2, dims, periods, 0, &cart);
    MPI_Topo_test(cart, &a);
    MPI_Cartdim_get(cart, &a);
    MPI_Cart_get(cart, 2, got, flags, coords);
    MPI_Cart_rank(cart, coords, &a);
    MPI_Cart_coords(cart, size - 1, 2, coords);
    MPI_Cart_shift(cart, 0, 1, &a, &b);
    MPI_Cart_shift(cart, 1, -1, &a, &b);
    MPI_Cart_shift(cart, 5, 1, &a, &b);
    MPI_Cart_sub(cart, keep, &sub);
    MPI_Cart_get(sub, 1, got, flags, coords);
    MPI_Comm_free(&sub);
    MPI_Cart_map(WORLD, 2, dims, periods, &a);
    MPI_Comm_dup(cart, &sub);
    MPI_Topo_test(sub, &a);
    MPI_Comm_free(&sub);
    MPI_Comm_free(&cart);
    for (int i = 0; i < size; ++i) index[i] = i + 1, edges[i] = (i + 1) % size;
    MPI_Graph_create(WORLD, size, index, edges, 0, &graph);
    MPI_Topo_test(graph, &a);
    MPI_Graphdims_get(graph, &a, &b);
    MPI_Graph_get(graph, size, size, index, edges);
    MPI_Graph_neighbors_count(graph, rank, &a);
    MPI_Graph_neighbors(graph, rank, 1, list);
    MPI_Graph_map(WORLD, size, index, edges, &a);
    MPI_Comm_free(&graph);
    int sources[1] = {rank}, degrees[1] = {1}, targets[1] = {right}, weights[1] = {rank + 2}, in[4], iw[4],
        out[4], ow[4], weighted;
    MPI_Dist_graph_create(WORLD, 1, sources, degrees, targets, weights, MPI_INFO_NULL, 0, &dist);
    MPI_Topo_test(dist, &a);
    MPI_Dist_graph_neighbors_count(dist, &a, &b, &weighted);
    MPI_Dist_graph_neighbors(dist, a, in, iw, b, out, ow);
    rec_show("weights in", iw, a, 4), rec_show("weights out", ow, b, 4);
    MPI_Comm_free(&dist);
    MPI_Dist_graph_create_adjacent(WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                   0, &dist);
    MPI_Dist_graph_neighbors_count(dist, &a, &b, &weighted);
    MPI_Comm_free(&dist);
    MPI_Topo_test(WORLD, &a);
    MPI_Cartdim_get(WORLD, &a);
    MPI_Graph_neighbors_count(WORLD, 0, &a);
    dims[0] = size + 1, dims[1] = 1;
    MPI_Cart_create(WORLD, 2, dims, periods, 0, &cart);
}
