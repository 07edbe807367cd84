// The application's side: compiled against a real mpi.h, linked with the front of that ABI and the recording
// core.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core.h"
#include "lower/binding/undeclared.h"

using core::answer;
using core::callback;
using core::seen;

namespace {

namespace fm = fermata::mpi;
uint32_t dynamic(fm::Kind kind, uint32_t index = 70) { return fm::dynamic_word(kind, index); }

class Front : public ::testing::Test {
  protected:
    void SetUp() override { core::reset(); }
};

#ifdef FRONT_OPENMPI
static_assert(sizeof(MPI_Status) == 24);
#else
static_assert(sizeof(MPI_Status) == 20);
#endif

// --- facts ---

TEST_F(Front, ConstantsAreThoseOfTheHeader) {
#define VALUE(name, value) EXPECT_EQ(name, value) << #name;
#define HANDLE(kind, name, std)
#include FACTS
#undef VALUE
#undef HANDLE
}

template <typename H>
uint32_t in(H, fm::Kind);
int flag_, int_;
uint32_t in_comm(MPI_Comm h) {
    MPI_Comm_rank(h, &int_);
    return seen.word;
}
uint32_t in_datatype(MPI_Datatype h) {
    MPI_Type_size(h, &int_);
    return seen.word;
}
uint32_t in_op(MPI_Op h) {
    MPI_Op_commutative(h, &int_);
    return seen.word;
}
uint32_t in_group(MPI_Group h) {
    MPI_Group_size(h, &int_);
    return seen.word;
}
uint32_t in_info(MPI_Info h) {
    MPI_Info_get_nkeys(h, &int_);
    return seen.word;
}
uint32_t in_errhandler(MPI_Errhandler h) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, h);
    return seen.word;
}
uint32_t in_request(MPI_Request h) {
    MPI_Request_get_status(h, &flag_, MPI_STATUS_IGNORE);
    return seen.word;
}
uint32_t in_message(MPI_Message h) {
    MPI_Mrecv(&int_, 1, MPI_INT, &h, MPI_STATUS_IGNORE);
    return seen.word;
}
uint32_t in_win(MPI_Win h) {
    MPI_Win_flush_all(h);
    return seen.word;
}
uint32_t in_file(MPI_File h) {
    MPI_File_sync(h);
    return seen.word;
}
MPI_Comm out_comm(uint32_t w) {
    MPI_Comm h;
    answer.word = w;
    MPI_Comm_dup(MPI_COMM_WORLD, &h);
    return h;
}
MPI_Datatype out_datatype(uint32_t w) {
    MPI_Datatype h;
    answer.word = w;
    MPI_Type_dup(MPI_INT, &h);
    return h;
}
MPI_Op out_op(uint32_t w) {
    MPI_Op h;
    answer.word = w;
    MPI_Op_create(nullptr, 0, &h);
    return h;
}
MPI_Group out_group(uint32_t w) {
    MPI_Group h;
    answer.word = w;
    MPI_Comm_group(MPI_COMM_WORLD, &h);
    return h;
}
MPI_Info out_info(uint32_t w) {
    MPI_Info h;
    answer.word = w;
    MPI_Info_create(&h);
    return h;
}
MPI_Errhandler out_errhandler(uint32_t w) {
    MPI_Errhandler h;
    answer.word = w;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &h);
    return h;
}
MPI_Request out_request(uint32_t w) {
    MPI_Request h;
    answer.word = w == fm::word_of(fm::FM_REQUEST_NULL) ? dynamic(fm::Kind::request) : w;
    MPI_Isend(nullptr, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, &h);
    answer.word = w;
    if (w == fm::word_of(fm::FM_REQUEST_NULL))
        MPI_Wait(&h, MPI_STATUS_IGNORE);  // no beginning makes one null
    return h;
}
MPI_Message out_message(uint32_t w) {
    MPI_Message h;
    answer.word = w;
    answer.flag = 1;
    MPI_Improbe(0, 0, MPI_COMM_WORLD, &flag_, &h, MPI_STATUS_IGNORE);
    return h;
}
MPI_Win out_win(uint32_t w) {
    MPI_Win h;
    answer.word = w;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &h);
    return h;
}
MPI_File out_file(uint32_t w) {
    MPI_File h;
    answer.word = w;
    MPI_File_open(MPI_COMM_WORLD, "f", MPI_MODE_RDONLY, MPI_INFO_NULL, &h);
    return h;
}
#ifndef FRONT_OPENMPI
uint32_t in_session(MPI_Session h) {
    MPI_Session_set_errhandler(h, MPI_ERRORS_RETURN);
    return seen.word;
}
MPI_Session out_session(uint32_t w) {
    MPI_Session h;
    answer.word = w;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &h);
    return h;
}
#endif

TEST_F(Front, PredefinedHandlesBothWays) {
#define VALUE(name, value)
#define HANDLE(kind, name, std)                         \
    EXPECT_EQ(in_##kind(name), unsigned{std}) << #name; \
    EXPECT_EQ(out_##kind(std), name) << #name;
#include FACTS
#undef VALUE
#undef HANDLE
}

TEST_F(Front, DynamicHandlesBothWays) {
#define BOTH(kind)                                                                                   \
    for (uint32_t index : {64u, 65u, 4000u, (1u << 26) - 1})                                         \
    EXPECT_EQ(in_##kind(out_##kind(dynamic(fm::Kind::kind, index))), dynamic(fm::Kind::kind, index)) \
        << #kind << index
    BOTH(comm);
    BOTH(datatype);
    BOTH(op);
    BOTH(group);
    BOTH(info);
    BOTH(errhandler);
    BOTH(request);
    BOTH(message);
    BOTH(win);
    BOTH(file);
}

#ifdef FRONT_OPENMPI
// Open MPI 4's mpi.h has no sessions.
extern "C" {
int session_c2f(void*) __asm__("PMPI_Session_c2f");
void* session_f2c(int) __asm__("PMPI_Session_f2c");
extern char no_session[] __asm__("ompi_mpi_instance_null");
}
#endif

TEST_F(Front, FortranHandlesBothWays) {
#ifdef FRONT_OPENMPI
    EXPECT_EQ(MPI_Comm_c2f(MPI_COMM_WORLD), 0);
    EXPECT_EQ(MPI_Comm_c2f(MPI_COMM_NULL), 2);
    EXPECT_EQ(MPI_Type_c2f(MPI_INTEGER), 7);
    EXPECT_EQ(session_c2f(no_session), 0);
    EXPECT_EQ(session_f2c(0), no_session);
#else
    EXPECT_EQ(MPI_Comm_c2f(MPI_COMM_WORLD), 0x44000000);
#endif
    EXPECT_EQ(MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_SELF)), MPI_COMM_SELF);
    EXPECT_EQ(MPI_Type_f2c(MPI_Type_c2f(MPI_DOUBLE_PRECISION)), MPI_DOUBLE_PRECISION);
    MPI_File file = out_file(dynamic(fm::Kind::file));
    EXPECT_EQ(MPI_File_f2c(MPI_File_c2f(file)), file);
    EXPECT_EQ(MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)), MPI_FILE_NULL);
    MPI_Comm comm = out_comm(dynamic(fm::Kind::comm));
    EXPECT_EQ(MPI_Comm_f2c(MPI_Comm_c2f(comm)), comm);
}

// --- point-to-point ---

TEST_F(Front, SendTranslatesRankTagAndType) {
    int x = 0;
    EXPECT_EQ(MPI_Send(&x, 3, MPI_DOUBLE, MPI_PROC_NULL, 7, MPI_COMM_SELF), MPI_SUCCESS);
    EXPECT_EQ(seen.integer[0], fm::FM_PROC_NULL);
    EXPECT_EQ(seen.integer[1], 7);
    EXPECT_EQ(seen.count, 3);
    EXPECT_EQ(seen.words[0], fm::word_of(fm::FM_DOUBLE));
    EXPECT_EQ(seen.word, fm::word_of(fm::FM_COMM_SELF));
    // Values that mean nothing stay errors: -2 is Open MPI's PROC_NULL, and the standard's ANY_TAG.
    MPI_Send(&x, 1, MPI_INT, -77, -55, MPI_COMM_WORLD);
    EXPECT_LT(seen.integer[0], -1000);
    EXPECT_LT(seen.integer[1], -1000);
}

TEST_F(Front, RecvFillsTheStatus) {
    int x;
    MPI_Status status;
    memset(&status, 0x55, sizeof status);
    answer.status = fm::Status{3, 9, 0, 1, (5ll << 32) + 17, 0};
    EXPECT_EQ(MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status), MPI_SUCCESS);
    EXPECT_EQ(seen.integer[0], fm::FM_ANY_SOURCE);
    EXPECT_EQ(seen.integer[1], fm::FM_ANY_TAG);
    EXPECT_EQ(status.MPI_SOURCE, 3);
    EXPECT_EQ(status.MPI_TAG, 9);
    EXPECT_EQ(status.MPI_ERROR, 0x55555555) << "single completions leave MPI_ERROR alone";
    int count = 0;
    answer.count = 4;
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_EQ(count, 4);
    EXPECT_EQ(answer.status.count, (5ll << 32) + 17) << "byte count survives the application's status";
    EXPECT_EQ(answer.status.cancelled, 1);
    answer.count = 1ll << 40;
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_EQ(count, MPI_UNDEFINED);
    answer.status = fm::Status{fm::FM_PROC_NULL, fm::FM_ANY_TAG, 0, 0, 0, 0};
    MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status);
    EXPECT_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
    EXPECT_EQ(status.MPI_TAG, MPI_ANY_TAG);
    MPI_Recv(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQ(seen.pointer[0], nullptr);
}

TEST_F(Front, TruncationIsTheAbisErrorAndKeepsTheEnvelope) {
    int x;
    MPI_Status status{};
    answer.rc = fm::FM_ERR_TRUNCATE;
    answer.status = fm::Status{2, 4, 0, 0, 4, 0};
    EXPECT_EQ(MPI_Recv(&x, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &status), MPI_ERR_TRUNCATE);
    EXPECT_EQ(status.MPI_SOURCE, 2);
}

TEST_F(Front, ProbesThatFindNothingWriteNothing) {
    int flag = 1;
    MPI_Status status;
    memset(&status, 0x55, sizeof status);
    MPI_Iprobe(0, 0, MPI_COMM_WORLD, &flag, &status);
    EXPECT_EQ(flag, 0);
    EXPECT_EQ(status.MPI_SOURCE, 0x55555555);
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Improbe(0, 0, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
    EXPECT_EQ(message, MPI_MESSAGE_NULL);
}

TEST_F(Front, WaitReplacesTheRequest) {
    MPI_Request request = out_request(dynamic(fm::Kind::request));
    answer.word = fm::word_of(fm::FM_REQUEST_NULL);
    EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(seen.word, dynamic(fm::Kind::request));
    EXPECT_EQ(request, MPI_REQUEST_NULL);
    EXPECT_EQ(seen.pointer[0], nullptr);
}

TEST_F(Front, WaitallTranslatesArrays) {
    std::vector<MPI_Request> requests;
    for (unsigned i = 0; i < 40; i++) {  // more than fit the stack
        requests.push_back(i == 5 ? MPI_REQUEST_NULL : out_request(dynamic(fm::Kind::request, 64 + i)));
        answer.words[i] = fm::word_of(fm::FM_REQUEST_NULL);
        answer.statuses[i] = fm::Status{static_cast<int>(i), 1, i == 3 ? fm::FM_ERR_TRUNCATE : 0, 0, 8, 0};
    }
    answer.words[7] = dynamic(fm::Kind::request, 71);  // persistent: stays
    answer.rc = fm::FM_ERR_IN_STATUS;
    std::vector<MPI_Status> statuses(40);
    MPI_Request seventh = requests[7];
    EXPECT_EQ(MPI_Waitall(40, requests.data(), statuses.data()), MPI_ERR_IN_STATUS);
    EXPECT_EQ(seen.words[4], dynamic(fm::Kind::request, 68));
    EXPECT_EQ(seen.words[5], fm::word_of(fm::FM_REQUEST_NULL));
    EXPECT_EQ(requests[7], seventh);
    EXPECT_EQ(requests[8], MPI_REQUEST_NULL);
    EXPECT_EQ(statuses[3].MPI_ERROR, MPI_ERR_TRUNCATE);
    EXPECT_EQ(statuses[4].MPI_ERROR, MPI_SUCCESS);
    EXPECT_EQ(statuses[39].MPI_SOURCE, 39);
    answer.rc = 0;
    EXPECT_EQ(MPI_Waitall(40, requests.data(), MPI_STATUSES_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(seen.pointer[0], nullptr);
}

TEST_F(Front, WaitsomeFillsOnlyWhatIsDone) {
    MPI_Request requests[3];
    for (unsigned i = 0; i < 3; i++) requests[i] = out_request(dynamic(fm::Kind::request, 64 + i));
    MPI_Status statuses[3];
    memset(statuses, 0x55, sizeof statuses);
    int indices[3], outcount;
    answer.integer = 1;
    answer.statuses[0] = fm::Status{6, 6, 0, 0, 0, 0};
    EXPECT_EQ(MPI_Waitsome(3, requests, &outcount, indices, statuses), MPI_SUCCESS);
    EXPECT_EQ(statuses[0].MPI_SOURCE, 6);
    EXPECT_EQ(statuses[1].MPI_SOURCE, 0x55555555);
    EXPECT_EQ(requests[0], MPI_REQUEST_NULL);
    answer.integer = MPI_UNDEFINED;
    EXPECT_EQ(MPI_Waitsome(3, requests, &outcount, indices, statuses), MPI_SUCCESS);
    EXPECT_EQ(outcount, MPI_UNDEFINED);
}

// --- collectives ---

TEST_F(Front, InPlaceAndBottom) {
    double x;
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(seen.pointer[0], fm::FM_IN_PLACE);
    EXPECT_EQ(seen.pointer[1], &x);
    EXPECT_EQ(seen.words[1], fm::word_of(fm::FM_SUM));
    MPI_Allreduce(&x, MPI_BOTTOM, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(seen.pointer[1], nullptr);
}

TEST_F(Front, ArraysOfDatatypes) {
    int zero[3] = {};
    MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE_INT, out_datatype(dynamic(fm::Kind::datatype))};
    int x[3];
    MPI_Alltoallw(x, zero, zero, types, x, zero, zero, types, MPI_COMM_WORLD);
    EXPECT_EQ(seen.words[0], fm::word_of(fm::FM_INT));
    EXPECT_EQ(seen.words[1], fm::word_of(fm::FM_DOUBLE_INT));
    EXPECT_EQ(seen.words[5], dynamic(fm::Kind::datatype));
    MPI_Alltoallw(MPI_IN_PLACE, nullptr, nullptr, nullptr, x, zero, zero, types, MPI_COMM_WORLD);
    EXPECT_EQ(seen.pointer[1], nullptr);
}

TEST_F(Front, WeightsOfGraphs) {
    int w[1] = {};
    MPI_Comm out;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, w, MPI_UNWEIGHTED, 0, w, MPI_WEIGHTS_EMPTY,
                                   MPI_INFO_NULL, 0, &out);
    EXPECT_EQ(seen.pointer[0], fm::FM_UNWEIGHTED);
    EXPECT_EQ(seen.pointer[1], fm::FM_WEIGHTS_EMPTY);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, w, w, 0, w, w, MPI_INFO_NULL, 0, &out);
    EXPECT_EQ(seen.pointer[0], w);
}

// --- values ---

TEST_F(Front, ErrorClassesBothWays) {
    int cls;
    for (auto [abi, std] : {std::pair{MPI_ERR_REQUEST, fm::FM_ERR_REQUEST},
                            {MPI_ERR_IN_STATUS, fm::FM_ERR_IN_STATUS},
                            {MPI_ERR_RMA_SHARED, fm::FM_ERR_RMA_SHARED},
                            {MPI_ERR_WIN, fm::FM_ERR_WIN}}) {
        EXPECT_EQ(MPI_Error_class(abi, &cls), MPI_SUCCESS);
        EXPECT_EQ(seen.integer[0], std);
        EXPECT_EQ(cls, abi);
    }
    answer.rc = fm::FM_ERR_COMM;
    EXPECT_EQ(MPI_Comm_rank(MPI_COMM_NULL, &cls), MPI_ERR_COMM);
    answer.rc = 0;
    // Made by MPI_Add_error_class: beyond the last code of its ABI, and of the standard.
    const int own = (MPI_ERR_LASTCODE > fm::FM_ERR_LASTCODE ? MPI_ERR_LASTCODE : fm::FM_ERR_LASTCODE) + 5;
    MPI_Error_class(own, &cls);
    EXPECT_GT(seen.integer[0], static_cast<int>(fm::FM_ERR_LASTCODE));
    EXPECT_EQ(cls, own);
}

TEST_F(Front, SmallClasses) {
    int v;
    answer.integer = fm::FM_THREAD_SERIALIZED;
    MPI_Query_thread(&v);
    EXPECT_EQ(v, MPI_THREAD_SERIALIZED);
    answer.integer = fm::FM_CONGRUENT;
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &v);
    EXPECT_EQ(v, MPI_CONGRUENT);
    answer.integer = fm::FM_DIST_GRAPH;
    MPI_Topo_test(MPI_COMM_WORLD, &v);
    EXPECT_EQ(v, MPI_DIST_GRAPH);
    answer.integer = fm::FM_UNDEFINED;
    MPI_Win_lock(MPI_LOCK_SHARED, 1, MPI_MODE_NOCHECK, MPI_WIN_NULL);
    EXPECT_EQ(seen.integer[0], fm::FM_LOCK_SHARED);
    EXPECT_EQ(seen.integer[2], fm::FM_MODE_NOCHECK);
    answer.word = dynamic(fm::Kind::file);
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, "x", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_EXCL, MPI_INFO_NULL, &file);
    EXPECT_EQ(seen.integer[0], fm::FM_MODE_CREATE | fm::FM_MODE_RDWR | fm::FM_MODE_EXCL);
    answer.integer = fm::FM_MODE_WRONLY | fm::FM_MODE_APPEND;
    MPI_File_get_amode(file, &v);
    EXPECT_EQ(v, MPI_MODE_WRONLY | MPI_MODE_APPEND);
    int ranks[3] = {2, MPI_PROC_NULL, 0}, out[3];
    MPI_Group_translate_ranks(MPI_GROUP_EMPTY, 3, ranks, MPI_GROUP_EMPTY, out);
    EXPECT_EQ(seen.integer[1], fm::FM_PROC_NULL);
    EXPECT_EQ(out[1], MPI_PROC_NULL);
    EXPECT_EQ(ranks[1], MPI_PROC_NULL);
}

TEST_F(Front, CountsInAndOut) {
    int position = 12;
    answer.count = 20;
    MPI_Pack(nullptr, 1, MPI_INT, nullptr, 100, &position, MPI_COMM_WORLD);
    EXPECT_EQ(seen.count, 12);
    EXPECT_EQ(position, 20);
    answer.count = 3ll << 31;
    int size;
    MPI_Type_size(MPI_INT, &size);
    EXPECT_EQ(size, MPI_UNDEFINED);
    MPI_Count big;
    MPI_Type_size_x(MPI_INT, &big);
    EXPECT_EQ(big, 3ll << 31);
}

TEST_F(Front, StringsAreCutToTheAbisLength) {
    std::string longer(500, 'e');
    answer.text = longer.c_str();
    std::vector<char> text(MPI_MAX_ERROR_STRING + 1, '#');
    int length = 0;
    EXPECT_EQ(MPI_Error_string(MPI_ERR_COMM, text.data(), &length), MPI_SUCCESS);
    EXPECT_EQ(text[MPI_MAX_ERROR_STRING], '#');
    EXPECT_EQ(strlen(text.data()), static_cast<size_t>(length));
    EXPECT_EQ(length, std::min(500, MPI_MAX_ERROR_STRING - 1));
}

TEST_F(Front, ConstantsInsideDatatypeContents) {
    int integers[4] = {};
    MPI_Aint addresses[1];
    MPI_Datatype types[1];
    answer.integer = 4;  // ndims, size, subsize, start, order would be 5: what counts is the last
    answer.flag = fm::FM_COMBINER_SUBARRAY;
    answer.words[3] = fm::FM_ORDER_FORTRAN;
    EXPECT_EQ(MPI_Type_get_contents(MPI_INT, 4, 0, 1, integers, addresses, types), MPI_SUCCESS);
    EXPECT_EQ(integers[3], MPI_ORDER_FORTRAN);
    EXPECT_EQ(types[0], MPI_DOUBLE);
    int v, combiner;
    MPI_Type_get_envelope(MPI_INT, &v, &v, &v, &combiner);
    EXPECT_EQ(combiner, MPI_COMBINER_SUBARRAY);
}

// --- attributes ---

TEST_F(Front, PredefinedAttributes) {
    int* value = nullptr;
    int flag;
    answer.flag = 1;
    answer.integer = 32767;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
    EXPECT_EQ(seen.integer[0], fm::FM_TAG_UB);
    EXPECT_EQ(*value, 32767);
    answer.integer = fm::FM_ANY_SOURCE;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag);
    EXPECT_EQ(*value, MPI_ANY_SOURCE);
    answer.integer = fm::FM_WIN_FLAVOR_SHARED;
    MPI_Win_get_attr(MPI_WIN_NULL, MPI_WIN_CREATE_FLAVOR, &value, &flag);
    EXPECT_EQ(seen.integer[0], fm::FM_WIN_CREATE_FLAVOR);
    EXPECT_EQ(*value, MPI_WIN_FLAVOR_SHARED);
    int* model;
    answer.integer = fm::FM_WIN_UNIFIED;
    MPI_Win_get_attr(MPI_WIN_NULL, MPI_WIN_MODEL, &model, &flag);
    EXPECT_EQ(*model, MPI_WIN_UNIFIED);
    EXPECT_EQ(*value, MPI_WIN_FLAVOR_SHARED);
}

int copy_attr(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
    EXPECT_EQ(comm, MPI_COMM_SELF);
    EXPECT_EQ(extra, nullptr);
    *static_cast<void**>(out) = static_cast<char*>(in) + keyval * 0 + 1;
    *flag = 1;
    return MPI_ERR_REQUEST;
}
int delete_attr(MPI_Comm comm, int, void*, void*) {
    EXPECT_EQ(comm, MPI_COMM_WORLD);
    return MPI_SUCCESS;
}

TEST_F(Front, AttributeCallbacks) {
    int keyval;
    answer.word = dynamic(fm::Kind::keyval);
    MPI_Comm_create_keyval(copy_attr, delete_attr, &keyval, nullptr);
    void* out = nullptr;
    int flag = 0;
    char in[4];
    EXPECT_EQ(callback.copy(callback.fn, fm::word_of(fm::FM_COMM_SELF), static_cast<int>(answer.word),
                            nullptr, in, &out, &flag),
              fm::FM_ERR_REQUEST);
    EXPECT_EQ(out, in + 1);
    EXPECT_EQ(callback.del(callback.delete_fn, fm::word_of(fm::FM_COMM_WORLD), 0, nullptr, nullptr),
              fm::FM_SUCCESS);
    MPI_Comm_free_keyval(&keyval);
    EXPECT_EQ(seen.integer[0], static_cast<int>(answer.word));
    EXPECT_EQ(keyval, MPI_KEYVAL_INVALID);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, nullptr);
    EXPECT_EQ(callback.fn, fm::FM_NULL_COPY_FN);
    EXPECT_EQ(callback.delete_fn, fm::FM_NULL_DELETE_FN);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyval, nullptr);
    EXPECT_EQ(callback.fn, fm::FM_DUP_FN);
}

// --- other callbacks ---

void user_op(void* in, void* inout, int* len, MPI_Datatype* type) {
    EXPECT_EQ(*len, 5);
    EXPECT_EQ(*type, MPI_DOUBLE_INT);
    *static_cast<int*>(inout) += *static_cast<int*>(in);
}
TEST_F(Front, UserOp) {
    MPI_Op op;
    answer.word = dynamic(fm::Kind::op);
    MPI_Op_create(user_op, 1, &op);
    int a = 2, b = 3;
    fm::Count n = 5;
    fm::Datatype type = fm::FM_DOUBLE_INT;
    callback.op(callback.fn, &a, &b, &n, &type);
    EXPECT_EQ(b, 5);
}

void handler(MPI_Comm* comm, int* code, ...) {
    EXPECT_EQ(*comm, MPI_COMM_WORLD);
    EXPECT_EQ(*code, MPI_ERR_TRUNCATE);
    *code = MPI_ERR_REQUEST;
}
TEST_F(Front, ErrorHandler) {
    MPI_Errhandler h;
    answer.word = dynamic(fm::Kind::errhandler);
    MPI_Comm_create_errhandler(handler, &h);
    int code = fm::FM_ERR_TRUNCATE;
    callback.err(callback.fn, fm::word_of(fm::FM_COMM_WORLD), &code, "MPI_Recv");
    EXPECT_EQ(code, fm::FM_ERR_REQUEST);
}

int query(void*, MPI_Status* status) {
    status->MPI_SOURCE = MPI_PROC_NULL;
    status->MPI_TAG = 8;
    return MPI_SUCCESS;
}
TEST_F(Front, GeneralizedRequest) {
    MPI_Request request;
    answer.word = dynamic(fm::Kind::request);
    MPI_Grequest_start(query, nullptr, nullptr, nullptr, &request);
    fm::Status status{};
    EXPECT_EQ(callback.query(callback.fn, nullptr, &status), fm::FM_SUCCESS);
    EXPECT_EQ(status.source, fm::FM_PROC_NULL);
    EXPECT_EQ(status.tag, 8);
}

}  // namespace
