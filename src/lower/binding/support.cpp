// The slow halves of the conversions in library.h.
#include <cstring>
#include <initializer_list>

#include "lower/binding/binding.h"
#include "lower/binding/constants.h"
#include "lower/binding/library.h"
#include "lower/binding/look.h"
#include "lower/binding/topology.h"

namespace fermata::lower {

int error_class(int rc) {
    int cls = MPI_ERR_UNKNOWN;
    if (MPI_Error_class(rc, &cls) != MPI_SUCCESS) cls = MPI_ERR_UNKNOWN;
    return to_std(errclass_values, cls, kErrOther);
}
int library_class(int std_class) { return to_lib(errclass_values, std_class, MPI_ERR_OTHER); }

int special_rank(int std_rank) {
    switch (std_rank) {
        case -1:
            return MPI_ANY_SOURCE;
        case -3:
            return MPI_PROC_NULL;
        case -4:
            return MPI_ROOT;
        case -32766:
            return MPI_UNDEFINED;
        default:
            return kUnknownValue;  // never a neighbour's special value by accident
    }
}
int special_rank_back(int rank) {
    if (rank == MPI_ANY_SOURCE) return -1;
    if (rank == MPI_PROC_NULL) return -3;
    if (rank == MPI_ROOT) return -4;
    return rank;
}

MPI_Status lib_status(const Status& s) {
    MPI_Status to{};
    to.MPI_SOURCE = lib_rank(s.source);
    to.MPI_TAG = lib_tag(s.tag);
    to.MPI_ERROR = s.error == 0 ? MPI_SUCCESS : library_class(s.error);
#if defined(OPEN_MPI)
    to._cancelled = s.cancelled;
    to._ucount = static_cast<size_t>(s.count);
#else
    to.count_lo = static_cast<int>(static_cast<uint64_t>(s.count) & 0xffffffffU);
    to.count_hi_and_cancelled =
        static_cast<int>((static_cast<uint64_t>(s.count) >> 32) << 1 | (s.cancelled != 0 ? 1U : 0U));
#endif
    return to;
}

int status_error(int rc, const MPI_Status& s) {
    if (rc == MPI_SUCCESS) return 0;
    int cls = error_class(rc);
    return cls == kErrInStatus ? done(s.MPI_ERROR) : cls;
}

int own_size(MPI_Comm comm) {
    int n = 0;
    MPI_Comm_size(comm, &n);
    return n;
}
int peers(MPI_Comm comm) {
    int inter = 0, n = 0;
    if (MPI_Comm_test_inter(comm, &inter) == MPI_SUCCESS && inter != 0)
        MPI_Comm_remote_size(comm, &n);
    else
        n = own_size(comm);
    return n;
}
int peers(MPI_Comm comm, int root) {
    if (root == MPI_ROOT) return peers(comm);
    int inter = 0, rank = -1;
    MPI_Comm_test_inter(comm, &inter);
    MPI_Comm_rank(comm, &rank);
    return inter == 0 && rank == root ? own_size(comm) : 0;
}

namespace {
struct Degrees {
    int in = 0, out = 0;
};
Degrees degrees(MPI_Comm comm) {
    Degrees d;
    int topology = MPI_UNDEFINED, rank = 0, weighted = 0;
    MPI_Topo_test(comm, &topology);
    if (topology == MPI_CART) {
        MPI_Cartdim_get(comm, &d.in);
        d.in *= 2;
        d.out = d.in;
    } else if (topology == MPI_GRAPH) {
        MPI_Comm_rank(comm, &rank);
        MPI_Graph_neighbors_count(comm, rank, &d.in);
        d.out = d.in;
    } else if (topology == MPI_DIST_GRAPH) {
        MPI_Dist_graph_neighbors_count(comm, &d.in, &d.out, &weighted);
    }
    return d;
}
}  // namespace
int indegree(MPI_Comm comm) { return degrees(comm).in; }
int outdegree(MPI_Comm comm) { return degrees(comm).out; }

// struct { chunk[count / kChunk] of contiguous(kChunk); rest }: elements stay back to back by extent.
Chunked::Chunked(Count count, MPI_Datatype type) : count_(static_cast<int>(count)), type_(type) {
    if (fits(count)) return;
    constexpr Count kChunk = Count{1} << 30;
    const Count chunks = count / kChunk;
    const auto rest = static_cast<int>(count % kChunk);
    if (count < 0 || !fits(chunks)) {
        error_ = MPI_ERR_COUNT;
        return;
    }
    MPI_Aint lb = 0, extent = 0;
    MPI_Datatype chunk = MPI_DATATYPE_NULL, body = MPI_DATATYPE_NULL, tail = MPI_DATATYPE_NULL;
    error_ = MPI_Type_get_extent(type, &lb, &extent);
    if (error_ == MPI_SUCCESS) error_ = MPI_Type_contiguous(static_cast<int>(kChunk), type, &chunk);
    if (error_ == MPI_SUCCESS) error_ = MPI_Type_contiguous(static_cast<int>(chunks), chunk, &body);
    if (error_ == MPI_SUCCESS) error_ = MPI_Type_contiguous(rest, type, &tail);
    if (error_ == MPI_SUCCESS) {
        int lengths[2] = {1, 1};
        MPI_Aint places[2] = {0, static_cast<MPI_Aint>(chunks * kChunk * extent)};
        MPI_Datatype types[2] = {body, tail};
        error_ = MPI_Type_create_struct(2, lengths, places, types, &type_);
    }
    if (error_ == MPI_SUCCESS) {
        made_ = true;
        count_ = 1;
        error_ = MPI_Type_commit(&type_);
    }
    for (MPI_Datatype* t : {&chunk, &body, &tail})
        if (*t != MPI_DATATYPE_NULL) MPI_Type_free(t);
}
Chunked::~Chunked() {
    if (made_) MPI_Type_free(&type_);
}

void Rebased::rebase() {
    MPI_Aint lb = 0, extent = 0;
    if (!fits(count_) || MPI_Type_get_true_extent(type_, &lb, &extent) != MPI_SUCCESS || lb == 0) return;
    int length = static_cast<int>(count_);
    MPI_Aint place = -lb;
    MPI_Datatype moved = MPI_DATATYPE_NULL;
    if (MPI_Type_create_hindexed(1, &length, &place, type_, &moved) != MPI_SUCCESS) return;
    MPI_Type_commit(&moved);
    buf_ = reinterpret_cast<void*>(lb);
    count_ = 1;
    type_ = moved;
    made_ = true;
}

void errors_return_comm(MPI_Comm comm) {
    if (comm != MPI_COMM_NULL) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}
void errors_return_win(MPI_Win win) {
    if (win != MPI_WIN_NULL) MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
}
void errors_return_file(MPI_File file) {
    if (file != MPI_FILE_NULL) MPI_File_set_errhandler(file, MPI_ERRORS_RETURN);
}

namespace {
MPI_Comm nobody_sends = MPI_COMM_SELF;
}  // namespace

MPI_Comm empty_world() { return nobody_sends; }

int world_again(MPI_Comm* made) {
#if defined(OPEN_MPI)
    // Its MPI_Comm_dup agrees on a context with MPI_Iallreduce, and from the first non-blocking collective of
    // a communicator on the component for these is asked at every poll of the library, by programs that know
    // none, too. MPI_Comm_create_group agrees by messages.
    MPI_Group all;
    int rc = MPI_Comm_group(MPI_COMM_WORLD, &all);
    if (rc != MPI_SUCCESS) return rc;
    rc = MPI_Comm_create_group(MPI_COMM_WORLD, all, 0, made);
    MPI_Group_free(&all);
    return rc;
#else
    return MPI_Comm_dup(MPI_COMM_WORLD, made);
#endif
}

uint64_t ended_send;

namespace {

// Both libraries have a request for what is complete from the start, and give it for messages that they have
// copied: Open MPI's ompi_request_empty, which lasts as long as the library, and MPICH 4.0's builtin ones,
// which are not counted (others were).
uint64_t find_ended_send() {
#if !defined(OPEN_MPI)
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS ||
        std::strstr(text, "MPICH Version:\t4.0.") == nullptr)
        return 0;
#endif
    uint64_t words[2] = {};
    for (uint64_t& word : words)
        if (MPI_Isend(&word, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF,
                      reinterpret_cast<MPI_Request*>(&word)) != MPI_SUCCESS)
            return 0;
    const uint64_t found = words[0] == words[1] ? words[0] : 0;
    for (uint64_t& word : words) MPI_Wait(reinterpret_cast<MPI_Request*>(&word), MPI_STATUS_IGNORE);
    return found;
}

}  // namespace

int binding_ready() {
    errors_return_comm(MPI_COMM_WORLD);
    errors_return_comm(MPI_COMM_SELF);
    ended_send = find_ended_send();
    find_look();
    return done(world_again(&nobody_sends));
}

}  // namespace fermata::lower
