// Calls the Fortran entry points as gfortran does and looks at what reaches the core, in internal values.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "fermata_api.h"
#include "front/calls/unsupported.h"

using namespace fermata::mpi;

namespace {

struct Seen {
    const void* in;
    void* out;
    Count count;
    uint32_t word, type;
    int rank, tag;
    std::string text, text2;
    void* fn;
    CopyAdapter copy;
    OpAdapter op;
    ErrhandlerAdapter err;
    AttrLanguage language;
    void* value;
    Aint displacements[4];
    int flags[4];
} seen;
int answer = 0;

constexpr uint32_t kDynamicComm = dynamic_word(Kind::comm, 77);

}  // namespace

namespace fermata::front {
int unsupported(const char*) noexcept { return FM_ERR_UNSUPPORTED_OPERATION; }
int refused(const char*, const char*) noexcept { return FM_ERR_UNSUPPORTED_OPERATION; }
}  // namespace fermata::front

namespace fermata::mpi {
extern "C" {
int fm_raise(Kind, uint32_t, int code, const char*) { return code; }

int fm_Send(const void* buf, Count count, Datatype type, int dest, int tag, Comm comm) {
    seen.in = buf;
    seen.count = count;
    seen.type = word_of(type);
    seen.rank = dest;
    seen.tag = tag;
    seen.word = word_of(comm);
    return answer;
}
int fm_Recv(void* buf, Count, Datatype, int source, int tag, Comm, Status* status) {
    seen.out = buf;
    seen.rank = source;
    seen.tag = tag;
    seen.value = status;
    if (status != nullptr) *status = {3, 9, 0, 0, 12, 0};
    return answer;
}
int fm_Allreduce(const void* in, void* out, Count, Datatype, Op op, Comm) {
    seen.in = in;
    seen.out = out;
    seen.word = word_of(op);
    return answer;
}
int fm_Comm_dup(Comm, Comm* newcomm) {
    *newcomm = static_cast<Comm>(kDynamicComm);
    return answer;
}
int fm_Waitsome(int, Request* requests, int* outcount, int* indices, Status* statuses) {
    *outcount = 2;
    indices[0] = 0;
    indices[1] = 2;
    requests[0] = requests[2] = FM_REQUEST_NULL;
    if (statuses != nullptr) {
        statuses[0] = {1, 1, 0, 0, 4, 0};
        statuses[1] = {2, 2, 0, 0, 8, 0};
    }
    return answer;
}
int fm_Waitany(int, Request*, int* index, Status*) {
    *index = FM_UNDEFINED;
    return answer;
}
int fm_Info_set(Info, const char* key, const char* value) {
    seen.text = key;
    seen.text2 = value;
    return answer;
}
int fm_Info_get(Info, const char* key, int, char* value, int* flag) {
    seen.text = key;
    std::strcpy(value, "found");
    *flag = 1;
    return answer;
}
int fm_Comm_get_name(Comm, char* name, int* length) {
    std::strcpy(name, "a name");
    *length = 6;
    return answer;
}
int fm_Op_create(void* fn, OpAdapter adapter, int, Op* op) {
    seen.fn = fn;
    seen.op = adapter;
    *op = static_cast<Op>(dynamic_word(Kind::op, 64));
    return answer;
}
int fm_Comm_create_keyval(void* copy_fn, CopyAdapter copy, void*, DeleteAdapter, int* keyval, void* extra,
                          AttrLanguage language) {
    seen.fn = copy_fn;
    seen.copy = copy;
    seen.language = language;
    seen.value = extra;
    *keyval = 5000;
    return answer;
}
int fm_Comm_set_attr(Comm, int, void* value, AttrLanguage language) {
    seen.value = value;
    seen.language = language;
    return answer;
}
int fm_Comm_get_attr(Comm, int keyval, void* value, int* flag, AttrLanguage language) {
    seen.language = language;
    *flag = 1;
    if (language == AttrLanguage::fortran_aint)
        *static_cast<int64_t*>(value) = keyval == FM_IO ? FM_ANY_SOURCE : 1LL << 40;
    else
        *static_cast<int32_t*>(value) = 41;
    return answer;
}
int fm_Comm_create_errhandler(void* fn, ErrhandlerAdapter adapter, Errhandler* handler) {
    seen.fn = fn;
    seen.err = adapter;
    *handler = static_cast<Errhandler>(dynamic_word(Kind::errhandler, 64));
    return answer;
}
int fm_Type_create_struct(int count, const int*, const Aint* displacements, const Datatype* types,
                          Datatype* made) {
    for (int i = 0; i < count; i++) seen.displacements[i] = displacements[i];
    seen.type = word_of(types[0]);
    *made = static_cast<Datatype>(dynamic_word(Kind::datatype, 70));
    return answer;
}
int fm_Cart_create(Comm, int ndims, const int*, const int* periods, int reorder, Comm* made) {
    for (int i = 0; i < ndims; i++) seen.flags[i] = periods[i] != 0;
    seen.flags[3] = reorder != 0;
    *made = FM_COMM_NULL;
    return answer;
}
int fm_Testall(int, Request*, int* flag, Status*) {
    *flag = 4;  // any true
    return answer;
}
int fm_Get_address(const void* location, Aint* address) {
    *address = reinterpret_cast<Aint>(location);
    return answer;
}

}  // extern "C"
}  // namespace fermata::mpi

// As gfortran calls them.
extern "C" {
// Common blocks, in libmpi.so.40 or, as here, in the executable.
int mpi_fortran_bottom_, mpi_fortran_in_place_, mpi_fortran_unweighted_, mpi_fortran_weights_empty_,
    mpi_fortran_errcodes_ignore_;
char mpi_fortran_argv_null_[1], mpi_fortran_argvs_null_[1];
char mpi_fortran_status_ignore_[8], mpi_fortran_statuses_ignore_[8];
void mpi_send_(void*, int*, int*, int*, int*, int*, int*);
void mpi_recv_(void*, int*, int*, int*, int*, int*, void*, int*);
void mpi_allreduce_(void*, void*, int*, int*, int*, int*, int*);
void mpi_comm_dup_(int*, int*, int*);
void mpi_waitsome_(int*, int*, int*, int*, void*, int*);
void mpi_waitany_(int*, int*, int*, void*, int*);
void mpi_info_set_(int*, const char*, const char*, int*, size_t, size_t);
void mpi_info_get_(int*, const char*, int*, char*, int*, int*, size_t, size_t);
void mpi_comm_get_name_(int*, char*, int*, int*, size_t);
void mpi_op_create_(void*, int*, int*, int*);
void mpi_comm_create_keyval_(void*, void*, int*, int64_t*, int*);
void mpi_keyval_create_(void*, void*, int*, int*, int*);
void mpi_comm_set_attr_(int*, int*, int64_t*, int*);
void mpi_comm_get_attr_(int*, int*, int64_t*, int*, int*);
void mpi_attr_get_(int*, int*, int*, int*, int*);
void mpi_comm_create_errhandler_(void*, int*, int*);
void mpi_type_struct_(int*, int*, int*, int*, int*, int*);
void mpi_cart_create_(int*, int*, int*, int*, int*, int*, int*);
void mpi_testall_(int*, int*, int*, void*, int*);
void mpi_get_address_(void*, int64_t*, int*);
void mpi_comm_dup_fn_();
void MPI_SEND(void*, int*, int*, int*, int*, int*, int*);
void pmpi_send__(void*, int*, int*, int*, int*, int*, int*);
}

namespace {

// Open MPI's Fortran numbers (mpif-handles.h of 4.1.4).
int world = 0, integer = 7, sum = 3, request_null = 0, one = 1, two = 2, three = 3;
int ierror = -1;

class Fortran : public ::testing::Test {
  protected:
    void SetUp() override {
        seen = {};
        answer = 0;
        ierror = -1;
    }
};

TEST_F(Fortran, HandlesAndRanks) {
    int data = 0, proc_null = -2, tag = 4;
    mpi_send_(&data, &three, &integer, &proc_null, &tag, &world, &ierror);
    EXPECT_EQ(ierror, 0);
    EXPECT_EQ(seen.in, &data);
    EXPECT_EQ(seen.count, 3);
    EXPECT_EQ(seen.type, word_of(FM_INTEGER));
    EXPECT_EQ(seen.rank, FM_PROC_NULL);
    EXPECT_EQ(seen.word, word_of(FM_COMM_WORLD));
    int made = 0;
    mpi_comm_dup_(&world, &made, &ierror);
    EXPECT_LT(made, 0);
    mpi_send_(&data, &three, &integer, &one, &tag, &made, &ierror);
    EXPECT_EQ(seen.word, kDynamicComm);
    seen.word = 0;
    MPI_SEND(&data, &three, &integer, &one, &tag, &made, &ierror);
    EXPECT_EQ(seen.word, kDynamicComm);
    seen.word = 0;
    pmpi_send__(&data, &three, &integer, &one, &tag, &made, &ierror);
    EXPECT_EQ(seen.word, kDynamicComm);
    answer = FM_ERR_RANK;
    mpi_send_(&data, &three, &integer, &one, &tag, &made, &ierror);
    EXPECT_EQ(ierror, 6);
}

TEST_F(Fortran, CommonBlocks) {
    int result = 0;
    mpi_allreduce_(&mpi_fortran_in_place_, &result, &one, &integer, &sum, &world, &ierror);
    EXPECT_EQ(seen.in, FM_IN_PLACE);
    EXPECT_EQ(seen.out, &result);
    EXPECT_EQ(seen.word, word_of(FM_SUM));
    int any = -1;
    mpi_recv_(&mpi_fortran_bottom_, &one, &integer, &any, &any, &world, mpi_fortran_status_ignore_, &ierror);
    EXPECT_EQ(seen.out, nullptr);
    EXPECT_EQ(seen.value, nullptr);
    EXPECT_EQ(seen.rank, FM_ANY_SOURCE);
    EXPECT_EQ(seen.tag, FM_ANY_TAG);
    int64_t address = -1;
    mpi_get_address_(&mpi_fortran_bottom_, &address, &ierror);
    EXPECT_EQ(address, 0);
}

TEST_F(Fortran, Statuses) {
    int status[7] = {0, 0, 55, 0, 0, 0, 66}, data;
    mpi_recv_(&data, &one, &integer, &one, &one, &world, status, &ierror);
    EXPECT_EQ(status[0], 3);
    EXPECT_EQ(status[1], 9);
    EXPECT_EQ(status[2], 55);  // MPI_ERROR is not touched
    EXPECT_EQ(status[4], 12);
    EXPECT_EQ(status[6], 66);
}

TEST_F(Fortran, IndicesFromOne) {
    int requests[3] = {-1000000, -1000001, -1000002}, outcount = 0, indices[3] = {}, statuses[18] = {};
    mpi_waitsome_(&three, requests, &outcount, indices, statuses, &ierror);
    EXPECT_EQ(indices[0], 1);
    EXPECT_EQ(indices[1], 3);
    EXPECT_EQ(requests[0], request_null);
    EXPECT_EQ(requests[1], -1000001);
    EXPECT_EQ(statuses[6], 2);
    mpi_waitsome_(&three, requests, &outcount, indices, mpi_fortran_statuses_ignore_, &ierror);
    int index = 0;
    mpi_waitany_(&three, requests, &index, mpi_fortran_status_ignore_, &ierror);
    EXPECT_EQ(index, FM_UNDEFINED);
}

TEST_F(Fortran, Strings) {
    int info = 0;
    mpi_info_set_(&info, "  key   ", "a value     ", &ierror, 8, 12);
    EXPECT_EQ(seen.text, "key");
    EXPECT_EQ(seen.text2, "a value");
    char value[8];
    int length = 8, flag = 0;
    mpi_info_get_(&info, "key", &length, value, &flag, &ierror, 3, 8);
    EXPECT_EQ(std::string(value, 8), "found   ");
    EXPECT_EQ(flag, 1);
    char name[64];
    mpi_comm_get_name_(&world, name, &length, &ierror, 64);
    EXPECT_EQ(length, 6);
    EXPECT_EQ(std::string(name, 8), "a name  ");
    EXPECT_EQ(name[63], ' ');
    mpi_comm_get_name_(&world, name, &length, &ierror, 3);
    EXPECT_EQ(std::string(name, 3), "a n");
}

TEST_F(Fortran, Logicals) {
    int dims[2] = {2, 2}, periods[2] = {1, 0}, reorder = 1, made = 5;
    mpi_cart_create_(&world, &two, dims, periods, &reorder, &made, &ierror);
    EXPECT_EQ(seen.flags[0], 1);
    EXPECT_EQ(seen.flags[1], 0);
    EXPECT_EQ(seen.flags[3], 1);
    EXPECT_EQ(made, 2);  // MPI_COMM_NULL
    int requests[1] = {request_null}, flag = 0;
    mpi_testall_(&one, requests, &flag, mpi_fortran_statuses_ignore_, &ierror);
    EXPECT_EQ(flag, 1);
}

void user_function(int* in, int* inout, int* n, int* type) {
    for (int i = 0; i < *n; i++) inout[i] += in[i] * *type;
}

TEST_F(Fortran, UserOp) {
    int op = 0, a[2] = {1, 2}, b[2] = {10, 20};
    mpi_op_create_(reinterpret_cast<void*>(user_function), &one, &op, &ierror);
    EXPECT_LT(op, 0);
    Count n = 2;
    Datatype type = FM_INTEGER;
    seen.op(seen.fn, a, b, &n, &type);
    EXPECT_EQ(b[0], 17);
    EXPECT_EQ(b[1], 34);
}

void copy_function(int* comm, int* keyval, int64_t* extra, int64_t* in, int64_t* out, int* flag, int* rc) {
    *out = *in + *extra + *keyval + *comm;
    *flag = 1;
    *rc = 0;
}

TEST_F(Fortran, Attributes) {
    int keyval = 0, flag = 0;
    int64_t extra = 1000, value = 1LL << 35, got = 0;
    mpi_comm_create_keyval_(reinterpret_cast<void*>(copy_function), reinterpret_cast<void*>(copy_function),
                            &keyval, &extra, &ierror);
    EXPECT_EQ(keyval, 5000);
    EXPECT_EQ(seen.language, AttrLanguage::fortran_aint);
    EXPECT_EQ(seen.value, reinterpret_cast<void*>(1000));
    void* out = nullptr;
    EXPECT_EQ(seen.copy(seen.fn, word_of(FM_COMM_WORLD), 5, reinterpret_cast<void*>(1000),
                        reinterpret_cast<void*>(7), &out, &flag),
              0);
    EXPECT_EQ(out, reinterpret_cast<void*>(1012));
    mpi_comm_set_attr_(&world, &keyval, &value, &ierror);
    EXPECT_EQ(seen.value, reinterpret_cast<void*>(value));
    mpi_comm_get_attr_(&world, &keyval, &got, &flag, &ierror);
    EXPECT_EQ(got, 1LL << 40);
    int io = 2;  // MPI_IO
    mpi_comm_get_attr_(&world, &io, &got, &flag, &ierror);
    EXPECT_EQ(got, -1);  // Open MPI's MPI_ANY_SOURCE
    int small = 0, small_extra = -3;
    mpi_attr_get_(&world, &keyval, &small, &flag, &ierror);
    EXPECT_EQ(small, 41);
    EXPECT_EQ(seen.language, AttrLanguage::fortran_int);
    mpi_keyval_create_(reinterpret_cast<void*>(copy_function), reinterpret_cast<void*>(copy_function),
                       &keyval, &small_extra, &ierror);
    EXPECT_EQ(seen.value, reinterpret_cast<void*>(-3));
    mpi_comm_create_keyval_(reinterpret_cast<void*>(mpi_comm_dup_fn_), reinterpret_cast<void*>(copy_function),
                            &keyval, &extra, &ierror);
    EXPECT_EQ(seen.fn, FM_DUP_FN);
}

void handler(int* comm, int* code) { *code += *comm; }

TEST_F(Fortran, Errhandlers) {
    int made = 0;
    mpi_comm_create_errhandler_(reinterpret_cast<void*>(handler), &made, &ierror);
    EXPECT_LT(made, 0);
    int code = FM_ERR_RANK;
    seen.err(seen.fn, word_of(FM_COMM_WORLD), &code, nullptr);
    EXPECT_EQ(code, FM_ERR_RANK);
}

TEST_F(Fortran, OldAddresses) {
    int lengths[2] = {1, 1}, displacements[2] = {0, -8}, types[2] = {integer, integer}, made = 0;
    mpi_type_struct_(&two, lengths, displacements, types, &made, &ierror);
    EXPECT_EQ(seen.displacements[1], -8);
    EXPECT_EQ(seen.type, word_of(FM_INTEGER));
    EXPECT_LT(made, 0);
}

}  // namespace
