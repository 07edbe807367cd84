// Entries of the Table that are not MPI functions: waits that give up when the upper half is asked to stop,
// the pull of the drain, facts. Compiled once per library.
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "binding_functions.h"
#include "lower/binding/binding.h"
#include "lower/binding/callback.h"
#include "lower/binding/constants.h"

namespace fermata::lower {

#if !defined(OPEN_MPI)
// MPICH 4.0.2 turns its engine in every MPI_Test, also of a request that is done (484 instructions); in
// MPI_Testany only when nothing is done (290, and 549).
int test_another(MPI_Request* req, int* done, MPI_Status* status) {
    int index;
    return MPI_Testany(1, req, &index, done, status);
}
#endif

namespace {

// Waiting politely. With a core per rank nothing is as fast as testing again; without one, the peer we wait
// for needs ours. g_yield says so; if nobody told us, a long fruitless time does (about a millisecond of
// tests).
class Patience {
  public:
    __attribute__((always_inline)) void again() {
        ++tests_;
        const uint32_t every = g_yield;
        if (__builtin_expect(every != 0, 0)) {
            if (tests_ % every == 0) sched_yield();
        } else if (__builtin_expect(tests_ >= kLong, 0)) {
            if (tests_ % kRest == 0) sched_yield();
        }
    }

  private:
    static constexpr uint32_t kLong = 16384;
    static constexpr uint32_t kRest = 64;
    uint32_t tests_ = 0;
};

// Tests one request until it is done or *stop. Returns the library's code. `turned`: the library's engine has
// just been turned.
__attribute__((always_inline)) inline int spin(MPI_Request* req, MPI_Status* status,
                                               const volatile uint32_t* stop, int* done,
                                               [[maybe_unused]] bool turned = false) {
    Patience patience;
    int rc;
#if !defined(OPEN_MPI)
    if (turned && ((rc = test_another(req, done, status)) != MPI_SUCCESS || *done != 0)) {
        *done = 1;
        return rc;
    }
#endif
    for (;;) {
        rc = MPI_Test(req, done, status);
        if (*done != 0 || __builtin_expect(rc != MPI_SUCCESS, 0)) {
            *done = 1;  // an error ends the request as well
            return rc;
        }
        if (*stop != 0) return MPI_SUCCESS;
        patience.again();
    }
}

// The same with many: tests until one is done or *stop. *index is MPI_UNDEFINED when none is, or all are
// null.
inline int spin_any(int n, MPI_Request* requests, int* index, MPI_Status* status,
                    const volatile uint32_t* stop, int* done) {
    *index = MPI_UNDEFINED;
    Patience patience;
    for (;;) {
        int rc = MPI_Testany(n, requests, index, done, status);
        if (__builtin_expect(rc != MPI_SUCCESS, 0)) *done = 1;
        if (*done != 0) return rc;
        if (*stop != 0) return MPI_SUCCESS;
        patience.again();
    }
}

// MPICH 4.0.2 gives source 0 for MPI_Irecv from MPI_PROC_NULL; the standard says MPI_PROC_NULL
// (MPI-4.0 3.11).
inline void put_proc_null(Status* status, int error, int source) {
    if (__builtin_expect(source == mpi::FM_PROC_NULL, 0) && status != nullptr && error == 0) {
        put_empty(status);
        status->source = mpi::FM_PROC_NULL;
    }
}

// start(count, type) with a count that the library takes; out of line, and with a copy, when it has to be
// made.
template <typename Start>
__attribute__((always_inline)) inline int counted(Count count, MPI_Datatype type, Start start) {
    if (__builtin_expect(!fits(count), 0)) return [=]() __attribute__((noinline, cold))->int {
            Chunked c(count, type);
            return c.error() != MPI_SUCCESS ? c.error() : start(c.count(), c.type());
        }
    ();
    return start(static_cast<int>(count), type);
}

__attribute__((always_inline)) inline int start_receive(void* buf, Count count, MPI_Datatype type, int source,
                                                        int tag, MPI_Comm comm, MPI_Request* req) {
    return counted(count, type, [=](int n, MPI_Datatype of) {
        return MPI_Irecv(lib_buffer(buf), n, of, lib_rank(source), lib_tag(tag), comm, req);
    });
}
int start_send(const void* buf, Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
               uint32_t mode, MPI_Request* req) {
    return counted(count, type, [=](int n, MPI_Datatype of) {
        switch (mode) {
            case 1:
                return MPI_Issend(buf, n, of, lib_rank(dest), lib_tag(tag), comm, req);
            case 2:
                return MPI_Irsend(buf, n, of, lib_rank(dest), lib_tag(tag), comm, req);
            default:
                return MPI_Isend(buf, n, of, lib_rank(dest), lib_tag(tag), comm, req);
        }
    });
}

// The library-specific end of every op thunk.
void op_handler(void* in, void* inout, int* len, MPI_Datatype* type, const void* record) {
    call_upper(static_cast<const OpRecord*>(record), in, inout, *len, to_word(*type));
}

MPI_Group world_group() {
    static MPI_Group group = [] {
        MPI_Group g = MPI_GROUP_NULL;
        MPI_Comm_group(MPI_COMM_WORLD, &g);
        return g;
    }();
    return group;
}

// All of the world, then every process of other worlds that this one has met and not forgotten. Null: nobody.
MPI_Group strangers_too = MPI_GROUP_NULL;

MPI_Group everybody() { return strangers_too != MPI_GROUP_NULL ? strangers_too : world_group(); }

int meet(MPI_Group group) {
    MPI_Group all = MPI_GROUP_NULL;
    int rc = MPI_Group_union(everybody(), group, &all);
    if (rc != MPI_SUCCESS) return rc;
    if (strangers_too != MPI_GROUP_NULL) MPI_Group_free(&strangers_too);
    strangers_too = all;
    return MPI_SUCCESS;
}

void copy_text(char* to, uint64_t size, const char* from) {
    if (size == 0) return;
    size_t n = std::strlen(from);
    if (n > size - 1) n = size - 1;
    std::memcpy(to, from, n);
    to[n] = 0;
}

}  // namespace

int b_Win_lock(int lock_type, int rank, int assert, RealWin win) {
    int rc = MPI_Win_lock(to_lib(lock_type_values, lock_type), lib_rank(rank),
                          to_lib_bits(assert_bits, assert), lib(win));
#if defined(OPEN_MPI)
    // Its component pt2pt has only asked for the lock by now, and waits for it in a later call. A lock that
    // counts as held must be held: a flush before the image is written would wait for a holder that stands
    // still, and a restart could give the locks out in another order.
    if (rc == MPI_SUCCESS && rank >= 0) rc = MPI_Win_flush(lib_rank(rank), lib(win));
#endif
    return done(rc);
}

namespace {
// The object a variable of the tools interface is bound to, in its own type.
class Bound {
  public:
    Bound(int bind, uint64_t word) {
        switch (bind) {
            case mpi::FM_T_BIND_MPI_COMM:
                at_ = &(comm_ = lib(RealComm{word}));
                break;
            case mpi::FM_T_BIND_MPI_DATATYPE:
                at_ = &(type_ = lib(RealDatatype{word}));
                break;
            case mpi::FM_T_BIND_MPI_FILE:
                at_ = &(file_ = lib(RealFile{word}));
                break;
            case mpi::FM_T_BIND_MPI_OP:
                at_ = &(op_ = lib(RealOp{word}));
                break;
            case mpi::FM_T_BIND_MPI_WIN:
                at_ = &(win_ = lib(RealWin{word}));
                break;
            default:
                break;
        }
    }
    void* at() { return at_; }

  private:
    void* at_ = nullptr;
    MPI_Comm comm_{};
    MPI_Datatype type_{};
    MPI_File file_{};
    MPI_Op op_{};
    MPI_Win win_{};
};
}  // namespace

int b_T_cvar_handle_alloc(int index, int bind, uint64_t object, uint64_t* handle, int* count) {
    Bound bound(bind, object);
    return done(
        MPI_T_cvar_handle_alloc(index, bound.at(), reinterpret_cast<MPI_T_cvar_handle*>(handle), count));
}

int b_T_pvar_handle_alloc(uint64_t session, int index, int bind, uint64_t object, uint64_t* handle,
                          int* count) {
    Bound bound(bind, object);
    return done(MPI_T_pvar_handle_alloc(reinterpret_cast<MPI_T_pvar_session>(session), index, bound.at(),
                                        reinterpret_cast<MPI_T_pvar_handle*>(handle), count));
}

int b_ClassOf(int code) { return done(code); }

int b_ToolsStart() {
    int provided = 0;
    return done(MPI_T_init_thread(MPI_THREAD_SERIALIZED, &provided));
}

int b_Op_create(OpCallback fn, uint64_t cookie, int commute, RealOp* op) {
    *op = {};
    OpRecord* record = op_acquire(reinterpret_cast<void*>(&op_handler), fn, cookie);
    if (record == nullptr) return kErrNoMem;
    MPI_Op made = MPI_OP_NULL;
    int rc = MPI_Op_create(reinterpret_cast<MPI_User_function*>(record->thunk), commute, &made);
    if (rc != MPI_SUCCESS) {
        op_release(record);
        return error_class(rc);
    }
    op_bind(record, to_word(made));
    put(op, made);
    return 0;
}

int b_Op_free(RealOp* op) {
    MPI_Op real = lib(*op);
    OpRecord* record = op_find(to_word(real));
    int rc = MPI_Op_free(&real);
    if (rc == MPI_SUCCESS && record != nullptr) op_release(record);
    put(op, real);
    return done(rc);
}

uint64_t b_RealOfPredefined(uint32_t, uint32_t std_value) {
    // Standard values of different kinds never overlap, so the value alone is the index.
    static uint64_t words[1024];
    static std::once_flag once;
    std::call_once(once, [] {
        for (size_t i = 0; i < predefined_count; ++i)
            words[predefined_handles[i].std] = predefined_handles[i].word;
    });
    return std_value < 1024 ? words[std_value] : 0;
}

namespace {
// The first test has not ended it well: `rc`, `finished` and `st` are what it said.
__attribute__((noinline)) int wait_on(mpi::RealRequest* req, Status* status, const volatile uint32_t* stop,
                                      int rc, int finished, MPI_Status& st) {
    if (rc == MPI_SUCCESS && finished == 0) {
        rc = spin(reinterpret_cast<MPI_Request*>(req), &st, stop, &finished);
        if (finished == 0) return -1;
    }
    *req = {};  // an error ends the request as well
    int error = status_error(rc, st);
    put_status(status, st, error);
    return error;
}
}  // namespace

int b_RecvSpin(void* buf, Count count, mpi::RealDatatype type, int source, int tag, mpi::RealComm comm,
               const volatile uint32_t* stop, mpi::RealRequest* req, Status* status) {
    // A word holds either library's handle as it is, but for the null one.
    *req = {};
    int rc =
        start_receive(buf, count, lib(type), source, tag, lib(comm), reinterpret_cast<MPI_Request*>(req));
    if (__builtin_expect(rc != MPI_SUCCESS, 0)) {
        *req = {};
        return error_class(rc);
    }
    MPI_Status st;
    int finished = 0;
    rc = MPI_Test(reinterpret_cast<MPI_Request*>(req), &finished, &st);
    if (__builtin_expect(rc != MPI_SUCCESS || finished == 0, 0)) {
        rc = wait_on(req, status, stop, rc, finished, st);
        if (rc < 0) return rc;
    } else {
        *req = {};
        put_status(status, st, 0);
    }
    put_proc_null(status, rc, source);
    return rc;
}

int b_SendSpin(const void* buf, Count count, mpi::RealDatatype type, int dest, int tag, mpi::RealComm comm,
               uint32_t mode, const volatile uint32_t* stop, mpi::RealRequest* req, int* finished) {
    MPI_Request request;
    *finished = 0;
    int rc = start_send(buf, count, lib(type), dest, tag, lib(comm), mode, &request);
    if (__builtin_expect(rc != MPI_SUCCESS, 0)) {
        *req = {};
        *finished = 1;
        return error_class(rc);
    }
    MPI_Status st;
    rc = spin(&request, &st, stop, finished);
    if (__builtin_expect(*finished == 0, 0)) {
        put(req, request);
        return 0;
    }
    *req = {};
    return __builtin_expect(rc == MPI_SUCCESS, 1) ? 0 : status_error(rc, st);
}

int b_SendrecvSpin(const void* sendbuf, Count sendcount, mpi::RealDatatype sendtype, int dest, int sendtag,
                   void* recvbuf, Count recvcount, mpi::RealDatatype recvtype, int source, int recvtag,
                   mpi::RealComm comm, const volatile uint32_t* stop, mpi::RealRequest* reqs, Status* status,
                   int* finished) {
    MPI_Request in = MPI_REQUEST_NULL, out = MPI_REQUEST_NULL;
    reqs[0] = reqs[1] = {};
    *finished = 0;
    int rc = start_receive(recvbuf, recvcount, lib(recvtype), source, recvtag, lib(comm), &in);
    if (rc == MPI_SUCCESS) {
        rc = start_send(sendbuf, sendcount, lib(sendtype), dest, sendtag, lib(comm), 0, &out);
        if (__builtin_expect(rc != MPI_SUCCESS,
                             0)) {  // a bad argument of the send: the receive must not stay
            MPI_Cancel(&in);
            MPI_Wait(&in, MPI_STATUS_IGNORE);
        }
    }
    if (__builtin_expect(rc != MPI_SUCCESS, 0)) {
        *finished = 1;
        return error_class(rc);
    }
    int error = 0;
    int done = 0;
    MPI_Status st;
    rc = spin(&in, &st, stop, &done);
    if (done != 0) {
        error = rc == MPI_SUCCESS ? 0 : status_error(rc, st);
        put_status(status, st, error);
        put_proc_null(status, error, source);
        MPI_Status ignored;
        rc = spin(&out, &ignored, stop, &done);
        if (done != 0 && rc != MPI_SUCCESS && error == 0) error = status_error(rc, ignored);
    }
    put(&reqs[0], in);
    put(&reqs[1], out);
    *finished = done;
    return error;
}

int b_WaitSpin(int n, mpi::RealRequest* reqs, Status* statuses, const volatile uint32_t* stop, int* next) {
    int failed = 0;
    int i = *next;
    // In order: the library's progress serves all of them while the first is waited for.
    for (; i < n; ++i) {
        if (__builtin_expect(static_cast<uint64_t>(reqs[i]) == 0, 0)) {
            put_empty(statuses != nullptr ? &statuses[i] : nullptr);
            continue;
        }
        MPI_Status st;
        int finished = 0;
        // A word holds either library's handle as it is, but for the null one.
        int rc = spin(reinterpret_cast<MPI_Request*>(&reqs[i]), statuses != nullptr ? &st : MPI_STATUS_IGNORE,
                      stop, &finished, i > 0);
        if (finished == 0) break;
        reqs[i] = {};
        if (__builtin_expect(rc != MPI_SUCCESS, 0)) {
            rc = statuses != nullptr ? status_error(rc, st) : error_class(rc);
            failed = n == 1 ? rc : kErrInStatus;
        }
        if (statuses != nullptr) put_status(&statuses[i], st, rc);
    }
    *next = i;
    return failed;
}

int b_WaitOneSpin(mpi::RealRequest* req, Status* status, const volatile uint32_t* stop) {
    MPI_Status st;
    int finished = 0;
    // A word holds either library's handle as it is, but for the null one.
    int rc = MPI_Test(reinterpret_cast<MPI_Request*>(req), &finished, &st);
    if (__builtin_expect(rc != MPI_SUCCESS || finished == 0, 0))
        return wait_on(req, status, stop, rc, finished, st);
    *req = {};
    put_status(status, st, 0);
    return 0;
}

int b_WaitInPlace(mpi::RealRequest* req, void* status, const volatile uint32_t* stop) {
    int finished = 0;
    const int rc =
        spin(reinterpret_cast<MPI_Request*>(req), static_cast<MPI_Status*>(status), stop, &finished);
    if (finished == 0) return -1;
    return rc == MPI_SUCCESS ? 0 : error_class(rc);
}

int b_WaitAnySpin(int n, mpi::RealRequest* reqs, int* index, Status* status, const volatile uint32_t* stop,
                  int* finished) {
    Temp<MPI_Request, 64> requests(n);
    if (requests.null()) return kErrNoMem;
    for (int i = 0; i < n; ++i) requests[i] = lib(reqs[i]);
    MPI_Status st;
    const int rc = spin_any(n, requests, index, &st, stop, finished);
    if (*finished == 0) return 0;
    const int error = status_error(rc, st);
    if (*index >= 0 && *index < n) {
        put(&reqs[*index], requests[*index]);
        put_status(status, st, error);
    } else {
        put_empty(status);
    }
    return error;
}

int b_WaitAnyInPlace(int n, mpi::RealRequest* reqs, int* index, void* status, const volatile uint32_t* stop) {
    Temp<MPI_Request, 64> requests(n);
    if (requests.null()) return kErrNoMem;
    for (int i = 0; i < n; ++i) requests[i] = lib(reqs[i]);
    int finished;
    const int rc = spin_any(n, requests, index, static_cast<MPI_Status*>(status), stop, &finished);
    if (finished == 0) return -1;
    return rc == MPI_SUCCESS ? 0 : error_class(rc);
}

int b_ProbeSpin(int source, int tag, mpi::RealComm comm, const volatile uint32_t* stop, Status* status,
                int* found) {
    MPI_Comm c = lib(comm);
    source = lib_rank(source);
    tag = lib_tag(tag);
    *found = 0;
    MPI_Status st{};  // MPICH 4.0.2 leaves the mark of cancelled messages as it was
    Patience patience;
    for (;;) {
        int rc = MPI_Iprobe(source, tag, c, found, &st);
        if (rc != MPI_SUCCESS) return error_class(rc);
        if (*found != 0) {
            put_status(status, st);
            return 0;
        }
        if (*stop != 0) return 0;
        patience.again();
    }
}

int b_MprobeSpin(int source, int tag, mpi::RealComm comm, const volatile uint32_t* stop,
                 mpi::RealMessage* message, Status* status, int* found) {
    MPI_Comm c = lib(comm);
    source = lib_rank(source);
    tag = lib_tag(tag);
    *found = 0;
    *message = {};
    MPI_Message m;
    MPI_Status st{};  // MPICH 4.0.2 leaves the mark of cancelled messages as it was
    Patience patience;
    for (;;) {
        int rc = MPI_Improbe(source, tag, c, found, &m, &st);
        if (rc != MPI_SUCCESS) return error_class(rc);
        if (*found != 0) {
            put(message, m);
            put_status(status, st);
            return 0;
        }
        if (*stop != 0) return 0;
        patience.again();
    }
}

int b_PullOne(mpi::RealComm comm, int* found, mpi::RealMessage* message, Status* status) {
    MPI_Message m;
    MPI_Status st;
    *found = 0;
    *message = {};
    int rc = MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, lib(comm), found, &m, &st);
    if (rc == MPI_SUCCESS && *found != 0) {
        put(message, m);
        put_status(status, st);
    }
    return done(rc);
}

void b_Progress() {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, empty_world(), &found, MPI_STATUS_IGNORE);
}

int b_GroupOfWorldRanks(int n, const int32_t* ranks, mpi::RealGroup* group) {
    MPI_Group g = MPI_GROUP_NULL;
    int rc = MPI_Group_incl(everybody(), n, ranks, &g);
    put(group, g);
    return done(rc);
}

int b_WorldRanksOfComm(mpi::RealComm comm, int remote, int n, int32_t* ranks) {
    MPI_Group g = MPI_GROUP_NULL;
    int rc = remote != 0 ? MPI_Comm_remote_group(lib(comm), &g) : MPI_Comm_group(lib(comm), &g);
    if (rc != MPI_SUCCESS) return error_class(rc);
    int size = 0;
    MPI_Group_size(g, &size);
    Temp<int, 128> all(n);
    if (size != n || all.null()) {
        rc = MPI_ERR_ARG;
    } else {
        for (int i = 0; i < n; ++i) all[i] = i;
        rc = MPI_Group_translate_ranks(g, n, all, world_group(), ranks);
        if (rc == MPI_SUCCESS && std::find(ranks, ranks + n, MPI_UNDEFINED) != ranks + n) {
            rc = meet(g);
            if (rc == MPI_SUCCESS) rc = MPI_Group_translate_ranks(g, n, all, everybody(), ranks);
        }
    }
    MPI_Group_free(&g);
    return done(rc);
}

int b_ForgetStrangers() {
    if (strangers_too == MPI_GROUP_NULL) return 0;
    int all = 0, world = 0;
    MPI_Group_size(strangers_too, &all);
    MPI_Group_size(world_group(), &world);
    MPI_Group_free(&strangers_too);
    strangers_too = MPI_GROUP_NULL;
    return all - world;
}

int b_WorldAttribute(int std_keyval, int64_t* value, int* found) {
    constexpr int kIo = 502, kHost = 503, kAppnum = 505, kLastUsedCode = 506;
    if (std_keyval == kAppnum && g_program >= 0) {
        *value = g_program;
        *found = 1;
        return 0;
    }
    int* at = nullptr;
    *found = 0;
    int rc =
        MPI_Comm_get_attr(MPI_COMM_WORLD, to_lib(keyval_values, std_keyval, MPI_KEYVAL_INVALID), &at, found);
    if (rc != MPI_SUCCESS || *found == 0) return done(rc);
    *value = *at;
    if (std_keyval == kIo || std_keyval == kHost) *value = std_rank(*at);
    if (std_keyval == kLastUsedCode) *value = 16383;  // the standard ABI's ERR_LASTCODE: user codes are upper
    return 0;
}

int b_WinAttribute(mpi::RealWin win, int std_keyval, int64_t* value, int* found) {
    void* at = nullptr;
    *found = 0;
    int rc = MPI_Win_get_attr(lib(win), to_lib(keyval_values, std_keyval, MPI_KEYVAL_INVALID), &at, found);
    if (rc != MPI_SUCCESS || *found == 0) return done(rc);
    constexpr int kBase = 601, kDispUnit = 602, kSize = 603, kFlavor = 604, kModel = 605;
    switch (std_keyval) {
        case kBase:
            *value = reinterpret_cast<int64_t>(at);
            break;
        case kSize:
            *value = *static_cast<MPI_Aint*>(at);
            break;
        case kDispUnit:
            *value = *static_cast<int*>(at);
            break;
        case kFlavor:
        case kModel: {
            const bool model = std_keyval == kModel;
            *value = 0;
            // Flavours (311..) and models (321..) share values in the library: look only at one's own half.
            for (size_t i = 0; i < winval_values.size; ++i) {
                const Pair& p = winval_values.begin[i];
                if ((p.std >= 320) == model && p.lib == *static_cast<int*>(at)) *value = p.std;
            }
            break;
        }
        default:
            *found = 0;
    }
    return 0;
}

int b_LibraryText(int what, char* text, uint64_t size) {
    char buffer[std::max(MPI_MAX_LIBRARY_VERSION_STRING, MPI_MAX_PROCESSOR_NAME)];
    int length = 0;
    buffer[0] = 0;
    int rc = what == 0 ? MPI_Get_library_version(buffer, &length) : MPI_Get_processor_name(buffer, &length);
    copy_text(text, size, buffer);
    return done(rc);
}

}  // namespace fermata::lower
