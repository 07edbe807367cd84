#include "core.h"

#include <cstring>

#include "fermata_api.h"
#include "front/calls/unsupported.h"

namespace core {
Seen seen;
Answer answer;
Callback callback;
void reset() {
    seen = {};
    answer = {};
    callback = {};
}
}  // namespace core

using namespace core;

namespace fermata::front {
int unsupported(const char*) noexcept { return FM_ERR_UNSUPPORTED_OPERATION; }
int refused(const char*, const char*) noexcept { return FM_ERR_UNSUPPORTED_OPERATION; }
}  // namespace fermata::front

template <typename H>
static void note(H handle) {
    seen.word = word_of(handle);
}

#define QUERY(name, H)        \
    int fm_##name(H handle) { \
        note(handle);         \
        return answer.rc;     \
    }

namespace fermata::mpi {
extern "C" {

int fm_raise(Kind, uint32_t, int code, const char*) { return code; }
Kind fm_errhandler_owner(Errhandler) { return Kind::none; }
void fm_errhandler_calls(Errhandler, ErrhandlerAdapter) {}
void* fm_op_calls(Op, OpAdapter, void*) { return nullptr; }
Kind fm_keyval_owner(int) { return Kind::none; }
void fm_keyval_is_fortran(int, CopyAdapter, DeleteAdapter) {}
void fm_grequest_is_fortran(Request, GrequestQueryAdapter, GrequestFreeAdapter, GrequestCancelAdapter) {}
bool fm_type_is_there(Datatype) { return true; }
int fm_T_ready() { return answer.rc; }
int fm_T_bind(bool, int) { return FM_T_BIND_NO_OBJECT; }

// One function per kind of handle, inwards ...
int fm_Comm_rank(Comm h, int* rank) {
    note(h);
    *rank = answer.integer;
    return answer.rc;
}
int fm_Type_size(Datatype h, Count* size) {
    note(h);
    *size = answer.count;
    return answer.rc;
}
int fm_Op_commutative(Op h, int* commute) {
    note(h);
    *commute = 1;
    return answer.rc;
}
int fm_Group_size(Group h, int* n) {
    note(h);
    *n = 0;
    return answer.rc;
}
int fm_Info_get_nkeys(Info h, int* n) {
    note(h);
    *n = 0;
    return answer.rc;
}
int fm_Comm_set_errhandler(Comm, Errhandler h) {
    note(h);
    return answer.rc;
}
int fm_Request_get_status(Request h, int* flag, Status* status) {
    note(h);
    *flag = answer.flag;
    if (status != nullptr) *status = answer.status;
    return answer.rc;
}
int fm_Mrecv(void*, Count, Datatype, Message* h, Status*) {
    note(*h);
    *h = static_cast<Message>(answer.word);
    return answer.rc;
}
QUERY(Win_flush_all, Win)
QUERY(File_sync, File)
int fm_Session_set_errhandler(Session h, Errhandler) {
    note(h);
    return answer.rc;
}
// ... and outwards.
int fm_Comm_dup(Comm h, Comm* out) {
    note(h);
    *out = static_cast<Comm>(answer.word);
    return answer.rc;
}
int fm_Type_dup(Datatype h, Datatype* out) {
    note(h);
    *out = static_cast<Datatype>(answer.word);
    return answer.rc;
}
int fm_Op_create(void* fn, OpAdapter adapter, int commute, Op* out) {
    callback.fn = fn;
    callback.op = adapter;
    seen.integer[0] = commute;
    *out = static_cast<Op>(answer.word);
    return answer.rc;
}
int fm_Comm_group(Comm h, Group* out) {
    note(h);
    *out = static_cast<Group>(answer.word);
    return answer.rc;
}
int fm_Info_create(Info* out) {
    *out = static_cast<Info>(answer.word);
    return answer.rc;
}
int fm_Comm_get_errhandler(Comm h, Errhandler* out) {
    note(h);
    *out = static_cast<Errhandler>(answer.word);
    return answer.rc;
}
int fm_Win_create_dynamic(Info, Comm, Win* out) {
    *out = static_cast<Win>(answer.word);
    return answer.rc;
}
int fm_File_open(Comm, const char*, int amode, Info, File* out) {
    seen.integer[0] = amode;
    *out = static_cast<File>(answer.word);
    return answer.rc;
}
int fm_Session_init(Info, Errhandler, Session* out) {
    *out = static_cast<Session>(answer.word);
    return answer.rc;
}

// Point-to-point.
int fm_Send(const void* buf, Count count, Datatype type, int dest, int tag, Comm comm) {
    note(comm);
    seen.pointer[0] = buf;
    seen.count = count;
    seen.integer[0] = dest;
    seen.integer[1] = tag;
    seen.words[0] = word_of(type);
    return answer.rc;
}
int fm_Isend(const void*, Count, Datatype, int, int, Comm, Request* request) {
    *request = static_cast<Request>(answer.word);
    return answer.rc;
}
int fm_Recv(void*, Count, Datatype, int source, int tag, Comm, Status* status) {
    seen.integer[0] = source;
    seen.integer[1] = tag;
    seen.pointer[0] = status;
    if (status != nullptr) *status = answer.status;
    return answer.rc;
}
int fm_Iprobe(int, int, Comm, int* flag, Status* status) {
    *flag = answer.flag;
    if (status != nullptr) *status = answer.status;
    return answer.rc;
}
int fm_Improbe(int, int, Comm, int* flag, Message* message, Status*) {
    *flag = answer.flag;
    if (answer.flag != 0) *message = static_cast<Message>(answer.word);
    return answer.rc;
}
int fm_Wait(Request* request, Status* status) {
    note(*request);
    *request = static_cast<Request>(answer.word);
    seen.pointer[0] = status;
    if (status != nullptr) *status = answer.status;
    return answer.rc;
}
int fm_Waitall(int n, Request* requests, Status* statuses) {
    seen.n = n;
    seen.pointer[0] = statuses;
    for (int i = 0; i < n && i < 64; i++) {
        seen.words[i] = word_of(requests[i]);
        requests[i] = static_cast<Request>(answer.words[i]);
        if (statuses != nullptr) statuses[i] = answer.statuses[i];
    }
    for (int i = 64; i < n; i++) requests[i] = FM_REQUEST_NULL;
    return answer.rc;
}
int fm_Waitsome(int n, Request* requests, int* outcount, int* indices, Status* statuses) {
    for (int i = 0; i < n; i++) seen.words[i] = word_of(requests[i]);
    *outcount = answer.integer;
    for (int i = 0; i < answer.integer; i++) {
        indices[i] = i;
        requests[i] = FM_REQUEST_NULL;
        if (statuses != nullptr) statuses[i] = answer.statuses[i];
    }
    return answer.rc;
}
int fm_Grequest_start(void* fn, GrequestQueryAdapter query, void*, GrequestFreeAdapter, void*,
                      GrequestCancelAdapter, void*, Request* request) {
    callback.fn = fn;
    callback.query = query;
    *request = static_cast<Request>(answer.word);
    return answer.rc;
}

// Collectives.
int fm_Allreduce(const void* send, void* recv, Count count, Datatype type, Op op, Comm comm) {
    seen.pointer[0] = send;
    seen.pointer[1] = recv;
    seen.count = count;
    seen.words[0] = word_of(type);
    seen.words[1] = word_of(op);
    note(comm);
    return answer.rc;
}
int fm_Comm_test_inter(Comm, int* flag) {
    *flag = 0;
    return 0;
}
int fm_Comm_size(Comm, int* size) {
    *size = 3;
    return 0;
}
int fm_Alltoallw(const void* send, const int*, const int*, const Datatype* sendtypes, void*, const int*,
                 const int*, const Datatype* recvtypes, Comm) {
    seen.pointer[0] = send;
    seen.pointer[1] = sendtypes;
    for (int i = 0; i < 3; i++) {
        if (sendtypes != nullptr) seen.words[i] = word_of(sendtypes[i]);
        seen.words[3 + i] = word_of(recvtypes[i]);
    }
    return answer.rc;
}
int fm_Dist_graph_create_adjacent(Comm, int, const int*, const int* sourceweights, int, const int*,
                                  const int* destweights, Info, int, Comm*) {
    seen.pointer[0] = sourceweights;
    seen.pointer[1] = destweights;
    return answer.rc;
}

// Values.
int fm_Error_class(int code, int* cls) {
    seen.integer[0] = code;
    *cls = code;
    return answer.rc;
}
int fm_Query_thread(int* provided) {
    *provided = answer.integer;
    return answer.rc;
}
int fm_Comm_compare(Comm, Comm, int* result) {
    *result = answer.integer;
    return answer.rc;
}
int fm_Topo_test(Comm, int* status) {
    *status = answer.integer;
    return answer.rc;
}
int fm_Win_lock(int lock_type, int rank, int assertion, Win) {
    seen.integer[0] = lock_type;
    seen.integer[1] = rank;
    seen.integer[2] = assertion;
    return answer.rc;
}
int fm_File_get_amode(File, int* amode) {
    *amode = answer.integer;
    return answer.rc;
}
int fm_Group_translate_ranks(Group, int n, const int* ranks1, Group, int* ranks2) {
    for (int i = 0; i < n; i++) {
        seen.integer[i] = ranks1[i];
        ranks2[i] = ranks1[i];
    }
    return answer.rc;
}
int fm_Comm_get_attr(Comm, int keyval, void* value, int* flag, AttrLanguage language) {
    static int place;
    seen.integer[0] = keyval;
    seen.integer[1] = static_cast<int>(language);
    place = answer.integer;
    *static_cast<int**>(value) = &place;
    *flag = answer.flag;
    return answer.rc;
}
int fm_Win_get_attr(Win, int keyval, void* value, int* flag, AttrLanguage) {
    static int place;
    seen.integer[0] = keyval;
    place = answer.integer;
    *static_cast<int**>(value) = &place;
    *flag = answer.flag;
    return answer.rc;
}
int fm_Comm_create_keyval(void* copy, CopyAdapter copy_adapter, void* del, DeleteAdapter del_adapter,
                          int* keyval, void*, AttrLanguage) {
    callback.fn = copy;
    callback.copy = copy_adapter;
    callback.delete_fn = del;
    callback.del = del_adapter;
    *keyval = static_cast<int>(answer.word);
    return answer.rc;
}
int fm_Comm_free_keyval(int* keyval) {
    seen.integer[0] = *keyval;
    *keyval = FM_KEYVAL_INVALID;
    return answer.rc;
}
int fm_Comm_create_errhandler(void* fn, ErrhandlerAdapter adapter, Errhandler* out) {
    callback.fn = fn;
    callback.err = adapter;
    *out = static_cast<Errhandler>(answer.word);
    return answer.rc;
}
int fm_Error_string(int code, char* text, int* length) {
    seen.integer[0] = code;
    strcpy(text, answer.text);
    *length = static_cast<int>(strlen(text));
    return answer.rc;
}
int fm_Type_get_envelope(Datatype, int* integers, int* addresses, int* types, int* combiner) {
    *integers = answer.integer;
    *addresses = 0;
    *types = 1;
    *combiner = answer.flag;
    return answer.rc;
}
int fm_Type_get_contents(Datatype, int, int, int, int* integers, Aint*, Datatype* types) {
    memcpy(integers, answer.words, static_cast<size_t>(answer.integer) * sizeof(int));
    types[0] = FM_DOUBLE;
    return answer.rc;
}
int fm_Pack(const void*, Count, Datatype, void*, Count, Count* position, Comm) {
    seen.count = *position;
    *position = answer.count;
    return answer.rc;
}
int fm_Get_count(const Status* status, Datatype, Count* count) {
    answer.status = *status;
    *count = answer.count;
    return answer.rc;
}

}  // extern "C"
}  // namespace fermata::mpi
