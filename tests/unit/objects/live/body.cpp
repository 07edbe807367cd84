// What an application does with MPI objects, before and after everything real under them was made again.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "fermata_api.h"
#include "split/bridge.h"

using namespace fermata;
using namespace fermata::mpi;

namespace {

int failures = 0;
int me, ranks;

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            failures++;                                                               \
            std::fprintf(stderr, "rank %d, line %d: %s\n", me, __LINE__, #condition); \
        }                                                                             \
    } while (0)
#define OK(call) CHECK((call) == FM_SUCCESS)

int sum_over(Comm comm, int value) {
    int total = -1;
    OK(fm_Allreduce(&value, &total, 1, FM_INT, FM_SUM, comm));
    return total;
}

// ---- objects that live over the rebuild

struct Objects {
    Comm dup, half, grid, row, graph, inter, group_comm, self_dup, merged;
    Datatype vector, record, resized, orphan_parent;
    std::vector<Op> ops;
    Win created, allocated, shared;
    // MPICH 4.0.2 over UCX 1.13 puts into a window whose base is not a multiple of 16 at the wrong place
    // (natively too).
    alignas(64) int window_memory[4];
    int* allocated_memory;
    int* shared_memory;
    File file;
    int keyval;
    int deleted;
};
Objects o;

void add_ints(void* cookie, void* in, void* inout, Count* len, Datatype* type) {
    if (*type != FM_INT) failures++;
    auto scale = static_cast<int>(reinterpret_cast<intptr_t>(cookie));
    auto *from = static_cast<int*>(in), *to = static_cast<int*>(inout);
    for (Count i = 0; i < *len; i++) to[i] += from[i] + 0 * scale;
}

int copy_attribute(void*, uint32_t, int, void* extra, void* in, void** out, int* flag) {
    *out = static_cast<char*>(in) + reinterpret_cast<intptr_t>(extra);
    *flag = 1;
    return FM_SUCCESS;
}
int delete_attribute(void*, uint32_t, int, void*, void*) {
    o.deleted++;
    return FM_SUCCESS;
}

int handler_calls = 0;
void count_errors(void*, uint32_t object, int* code, const char*) {
    if (*code != FM_ERR_RANK || object != word_of(o.dup)) failures++;
    handler_calls++;
}

void make_communicators() {
    OK(fm_Comm_create_keyval(reinterpret_cast<void*>(0x100), copy_attribute, reinterpret_cast<void*>(0x100),
                             delete_attribute, &o.keyval, reinterpret_cast<void*>(8), AttrLanguage::c));
    OK(fm_Comm_set_attr(FM_COMM_WORLD, o.keyval, reinterpret_cast<void*>(1000), AttrLanguage::c));
    OK(fm_Comm_dup(FM_COMM_WORLD, &o.dup));
    OK(fm_Comm_set_name(o.dup, "a duplicate"));
    Errhandler handler;
    OK(fm_Comm_create_errhandler(reinterpret_cast<void*>(0x100), count_errors, &handler));
    OK(fm_Comm_set_errhandler(o.dup, handler));
    OK(fm_Errhandler_free(&handler));
    // Members of a part in reverse.
    OK(fm_Comm_split(FM_COMM_WORLD, me % 2, -me, &o.half));
    int dims[2] = {2, ranks / 2}, periods[2] = {1, 0}, remain[2] = {0, 1};
    OK(fm_Cart_create(FM_COMM_WORLD, 2, dims, periods, 1, &o.grid));
    if (o.grid != FM_COMM_NULL) OK(fm_Cart_sub(o.grid, remain, &o.row));
    int left = (me + ranks - 1) % ranks, right = (me + 1) % ranks, weights[2] = {5, 6};
    int sources[2] = {right, left}, destinations[1] = {left};
    OK(fm_Dist_graph_create_adjacent(FM_COMM_WORLD, 2, sources, weights, 1, destinations, weights,
                                     FM_INFO_NULL, 0, &o.graph));
    OK(fm_Intercomm_create(o.half, 0, FM_COMM_WORLD,
                           me % 2 == 0 ? (ranks - 1) / 2 * 2 + 1 - (ranks % 2 ? 2 : 0) : (ranks - 1) / 2 * 2,
                           17, &o.inter));
    OK(fm_Intercomm_merge(o.inter, me % 2, &o.merged));
    Group world, some;
    OK(fm_Comm_group(FM_COMM_WORLD, &world));
    int range[1][3] = {{ranks - 1, 0, -2}};
    OK(fm_Group_range_incl(world, 1, &range[0][0], &some));
    int mine;
    OK(fm_Group_rank(some, &mine));
    o.group_comm = FM_COMM_NULL;
    if (mine != FM_UNDEFINED) OK(fm_Comm_create_group(FM_COMM_WORLD, some, 5, &o.group_comm));
    OK(fm_Group_free(&some));
    OK(fm_Group_free(&world));
    OK(fm_Comm_dup(FM_COMM_SELF, &o.self_dup));
}

void use_communicators() {
    int all = ranks * (ranks - 1) / 2;
    CHECK(sum_over(FM_COMM_WORLD, me) == all);
    CHECK(sum_over(o.dup, me) == all);
    CHECK(sum_over(o.merged, me) == all);
    CHECK(sum_over(o.self_dup, me) == me);
    int value = me, rank, size, position;
    OK(fm_Comm_rank(o.half, &rank));
    OK(fm_Comm_size(o.half, &size));
    CHECK(rank == size - 1 - me / 2);
    OK(fm_Bcast(&value, 1, FM_INT, 0, o.half));
    CHECK(value == (size - 1) * 2 + me % 2);
    if (o.group_comm != FM_COMM_NULL) {
        value = me;
        OK(fm_Bcast(&value, 1, FM_INT, 0, o.group_comm));
        CHECK(value == ranks - 1);
    }
    // The grid: neighbours by shift, sums along rows, coordinates.
    if (o.grid != FM_COMM_NULL) {
        int source, destination, got = -1, coords[2], dims[2], periods[2];
        OK(fm_Cart_shift(o.grid, 0, 1, &source, &destination));
        OK(fm_Comm_rank(o.grid, &rank));
        OK(fm_Sendrecv(&rank, 1, FM_INT, destination, 3, &got, 1, FM_INT, source, 3, o.grid, nullptr));
        CHECK(got == source);
        OK(fm_Cart_get(o.grid, 2, dims, periods, coords));
        OK(fm_Cart_rank(o.grid, coords, &position));
        CHECK(position == rank && dims[1] == ranks / 2 && periods[0] == 1);
        CHECK(sum_over(o.row, coords[0]) == coords[0] * (ranks / 2));
        std::vector<int> near(4, -1);
        OK(fm_Neighbor_allgather(&rank, 1, FM_INT, near.data(), 1, FM_INT, o.grid));
        CHECK(near[0] == source && near[1] == destination);
    }
    // The graph: what the right neighbour sends arrives first.
    int left = (me + ranks - 1) % ranks, right = (me + 1) % ranks;
    int in = -1, out = -1, weighted = -1, near[2] = {-1, -1}, sources[2], source_weights[2], destinations[1],
        weights[1];
    OK(fm_Dist_graph_neighbors_count(o.graph, &in, &out, &weighted));
    CHECK(in == 2 && out == 1 && weighted == 1);
    OK(fm_Dist_graph_neighbors(o.graph, 2, sources, source_weights, 1, destinations, weights));
    CHECK(sources[0] == right && sources[1] == left && source_weights[1] == 6 && destinations[0] == left);
    // Edges must match to be used: everybody sends to both sides.
    (void)near;
    // Inter-communicator: each side hears the sum of the other.
    int mine = me, theirs = -1, remote_size;
    OK(fm_Comm_remote_size(o.inter, &remote_size));
    OK(fm_Allreduce(&mine, &theirs, 1, FM_INT, FM_SUM, o.inter));
    int even = 0;
    for (int i = 0; i < ranks; i += 2) even += i;
    CHECK(theirs == (me % 2 == 0 ? all - even : even));
    char name[FM_MAX_OBJECT_NAME];
    int length, flag = 0, result;
    void* attribute = nullptr;
    OK(fm_Comm_get_name(o.dup, name, &length));
    CHECK(std::strcmp(name, "a duplicate") == 0 && length == 11);
    OK(fm_Comm_get_attr(o.dup, o.keyval, &attribute, &flag, AttrLanguage::c));
    CHECK(flag && attribute == reinterpret_cast<void*>(1008));
    OK(fm_Comm_compare(FM_COMM_WORLD, o.dup, &result));
    CHECK(result == FM_CONGRUENT);
    OK(fm_Comm_compare(o.dup, o.dup, &result));
    CHECK(result == FM_IDENT);
    // An error goes to the handler, and comes back as its class.
    int before = handler_calls;
    CHECK(fm_Send(&value, 1, FM_INT, ranks + 7, 0, o.dup) == FM_ERR_RANK);
    CHECK(handler_calls == before + 1);
    void* ub = nullptr;
    OK(fm_Comm_get_attr(FM_COMM_WORLD, FM_TAG_UB, &ub, &flag, AttrLanguage::c));
    CHECK(flag && *static_cast<int*>(ub) == (1 << 28) - 1);
}

struct Item {
    char tag;
    double value;
    int pair[2];
};

void make_types() {
    OK(fm_Type_vector(3, 2, 4, FM_INT, &o.vector));
    OK(fm_Type_commit(&o.vector));
    int lengths[3] = {1, 1, 2};
    Aint places[3] = {offsetof(Item, tag), offsetof(Item, value), offsetof(Item, pair)};
    Datatype kinds[3] = {FM_CHAR, FM_DOUBLE, FM_INT};
    Datatype raw;
    OK(fm_Type_create_struct(3, lengths, places, kinds, &raw));
    OK(fm_Type_create_resized(raw, 0, sizeof(Item), &o.record));
    OK(fm_Type_commit(&o.record));
    OK(fm_Type_free(&raw));
    Datatype child;
    OK(fm_Type_contiguous(3, FM_SHORT, &child));
    OK(fm_Type_create_hvector(2, 1, 32, child, &o.orphan_parent));
    OK(fm_Type_free(&child));  // before its parent, and before the rebuild
    OK(fm_Type_commit(&o.orphan_parent));
}

void use_types() {
    int right = (me + 1) % ranks, left = (me + ranks - 1) % ranks;
    Item send[2] = {{'a', me + 0.5, {me, 1}}, {'b', me + 1.5, {me, 2}}}, got[2] = {};
    Status status{};
    OK(fm_Sendrecv(send, 2, o.record, right, 1, got, 2, o.record, left, 1, o.dup, &status));
    CHECK(got[1].tag == 'b' && got[1].value == left + 1.5 && got[1].pair[0] == left && got[1].pair[1] == 2);
    Count count;
    OK(fm_Get_count(&status, o.record, &count));
    CHECK(count == 2);
    OK(fm_Get_elements(&status, o.record, &count));
    CHECK(count == 8);
    int grid[12], flat[6] = {};
    for (int i = 0; i < 12; i++) grid[i] = 100 * me + i;
    OK(fm_Sendrecv(grid, 1, o.vector, right, 2, flat, 6, FM_INT, left, 2, FM_COMM_WORLD, nullptr));
    for (int i = 0; i < 6; i++) CHECK(flat[i] == 100 * left + i / 2 * 4 + i % 2);
    Count size, lb, extent;
    OK(fm_Type_size(o.orphan_parent, &size));
    OK(fm_Type_get_extent(o.orphan_parent, &lb, &extent));
    CHECK(size == 12 && lb == 0 && extent == 38);
    int integers, addresses, types, combiner;
    OK(fm_Type_get_envelope(o.orphan_parent, &integers, &addresses, &types, &combiner));
    CHECK(integers == 2 && addresses == 1 && types == 1 && combiner == FM_COMBINER_HVECTOR);
    int ints[2];
    Aint aints[1];
    Datatype inner;
    OK(fm_Type_get_contents(o.orphan_parent, 2, 1, 1, ints, aints, &inner));
    CHECK(ints[0] == 2 && aints[0] == 32);
    OK(fm_Type_size(inner, &size));
    CHECK(size == 6);
    OK(fm_Type_free(&inner));
    char name[FM_MAX_OBJECT_NAME];
    OK(fm_Type_get_name(FM_DOUBLE, name, &ints[0]));
    CHECK(std::strcmp(name, "MPI_DOUBLE") == 0);
}

void make_ops() {
    o.ops.resize(200);
    for (size_t i = 0; i < o.ops.size(); i++)
        OK(fm_Op_create(reinterpret_cast<void*>(i + 1), add_ints, 1, &o.ops[i]));
}
void use_ops() {
    for (size_t i = 0; i < o.ops.size(); i += 37) {
        int value[2] = {me, 1}, total[2] = {};
        OK(fm_Allreduce(value, total, 2, FM_INT, o.ops[i], FM_COMM_WORLD));
        CHECK(total[0] == ranks * (ranks - 1) / 2 && total[1] == ranks);
    }
}

void make_windows() {
    OK(fm_Win_create(o.window_memory, sizeof o.window_memory, sizeof(int), FM_INFO_NULL, o.dup, &o.created));
    void* memory = nullptr;
    OK(fm_Win_allocate(64, 4, FM_INFO_NULL, FM_COMM_WORLD, &memory, &o.allocated));
    o.allocated_memory = static_cast<int*>(memory);
    OK(fm_Win_allocate_shared(16, 4, FM_INFO_NULL, FM_COMM_WORLD, &memory, &o.shared));
    o.shared_memory = static_cast<int*>(memory);
    o.shared_memory[0] = 7 * me;
    OK(fm_Win_fence(0, o.created));
    OK(fm_Win_lock_all(0, o.allocated));
}
void use_windows(int round) {
    int right = (me + 1) % ranks, left = (me + ranks - 1) % ranks;
    int value = me + 1000 * round;
    OK(fm_Put(&value, 1, FM_INT, right, round % 4, 1, FM_INT, o.created));
    OK(fm_Win_fence(0, o.created));
    CHECK(o.window_memory[round % 4] == left + 1000 * round);
    OK(fm_Put(&value, 1, FM_INT, right, round, 1, FM_INT, o.allocated));
    OK(fm_Win_flush_all(o.allocated));
    OK(fm_Barrier(FM_COMM_WORLD));
    OK(fm_Win_sync(o.allocated));
    CHECK(o.allocated_memory[round] == left + 1000 * round);
    Aint size, unit;
    void* memory = nullptr;
    OK(fm_Win_shared_query(o.shared, left, &size, &unit, &memory));
    CHECK(size == 16 && unit == 4 && static_cast<int*>(memory)[0] == 7 * left);
    // Still the same pages for all: a plain store is seen next door.
    o.shared_memory[1] = 50 * round + me;
    OK(fm_Barrier(FM_COMM_WORLD));
    CHECK(static_cast<volatile int*>(memory)[1] == 50 * round + left);
    OK(fm_Barrier(FM_COMM_WORLD));
}

void make_file(const char* path) {
    if (me == 0) unlink(path);
    OK(fm_Barrier(FM_COMM_WORLD));
    OK(fm_File_open(FM_COMM_WORLD, path, FM_MODE_CREATE | FM_MODE_RDWR, FM_INFO_NULL, &o.file));
    // Every rank sees every ranks-th int.
    Datatype tile, wide;
    OK(fm_Type_contiguous(1, FM_INT, &tile));
    OK(fm_Type_create_resized(tile, 0, 4 * ranks, &wide));
    OK(fm_Type_commit(&wide));
    OK(fm_File_set_view(o.file, 4 * me, FM_INT, wide, "native", FM_INFO_NULL));
    OK(fm_Type_free(&wide));
    OK(fm_Type_free(&tile));
}
void use_file(int round) {
    int values[2] = {me + 10 * round, me + 10 * round + 5};
    OK(fm_File_write(o.file, values, 2, FM_INT, nullptr));
    Offset position;
    OK(fm_File_get_position(o.file, &position));
    CHECK(position == 2 * (round + 1));
    int back = -1;
    OK(fm_File_read_at_all(o.file, 0, &back, 1, FM_INT, nullptr));
    CHECK(back == me);
}

void cycles() {
    for (int i = 0; i < 10000; i++) {
        Datatype type;
        OK(fm_Type_vector(2, 1, 3, FM_INT, &type));
        OK(fm_Type_free(&type));
        Group group;
        OK(fm_Comm_group(FM_COMM_WORLD, &group));
        OK(fm_Group_free(&group));
    }
    for (int i = 0; i < 10; i++) {
        Comm comm;
        OK(fm_Comm_dup(o.half, &comm));
        OK(fm_Comm_free(&comm));
    }
}

void free_all() {
    OK(fm_Win_unlock_all(o.allocated));
    OK(fm_Win_fence(FM_MODE_NOSUCCEED, o.created));
    for (Win* win : {&o.created, &o.allocated, &o.shared}) OK(fm_Win_free(win));
    OK(fm_File_close(&o.file));
    for (Op& op : o.ops) OK(fm_Op_free(&op));
    for (Datatype* type : {&o.vector, &o.record, &o.orphan_parent}) OK(fm_Type_free(type));
    for (Comm* comm :
         {&o.dup, &o.half, &o.grid, &o.row, &o.graph, &o.inter, &o.group_comm, &o.self_dup, &o.merged})
        if (*comm != FM_COMM_NULL && word_of(*comm) != 0) OK(fm_Comm_free(comm));
    CHECK(o.deleted == 1);  // of the duplicate of WORLD
    OK(fm_Comm_free_keyval(&o.keyval));
}

// A freed communicator goes when its members have all freed it. In a real checkpoint targets and drain see to
// it that they agree on that; here nobody runs the protocol, so give them time.
void settle() {
    for (int i = 0; i < 10; i++) {
        OK(fm_Barrier(FM_COMM_WORLD));
        Comm comm;
        OK(fm_Comm_dup(FM_COMM_SELF, &comm));
        OK(fm_Comm_free(&comm));
    }
}

void rebuild(split::UpperServices* services) {
    settle();
    char why[200] = "";
    services->freeze();
    CHECK(services->before_save() == 0);
    CHECK(services->rebuild(why, sizeof why) == 0);
    if (why[0] != 0) std::fprintf(stderr, "rank %d: %s\n", me, why);
    services->resume(1);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int run_body(split::UpperServices* services,
                                                               const char* path) {
    OK(fm_Init(nullptr, nullptr));
    OK(fm_Comm_rank(FM_COMM_WORLD, &me));
    OK(fm_Comm_size(FM_COMM_WORLD, &ranks));
    OK(fm_Comm_set_errhandler(FM_COMM_WORLD, FM_ERRORS_RETURN));
    make_communicators();
    make_types();
    make_ops();
    make_windows();
    make_file(path);
    for (int round = 0; round < 3; round++) {
        use_communicators();
        use_types();
        use_ops();
        use_windows(round);
        use_file(round);
        cycles();
        if (round < 2) rebuild(services);
    }
    free_all();
    OK(fm_Finalize());
    CHECK(o.deleted == 2);  // WORLD's own
    return failures;
}
