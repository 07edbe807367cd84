// Functions beyond the standard: those of user-level failure mitigation in a job of which nobody has failed,
// and small ones of MPICH's.
//
// A program under Fermata never sees a process fail: the job ends with it, or goes on from its last
// checkpoint. So nobody is ever among the failed, and no communicator is revoked (MPIX_Comm_revoke is
// refused: mpi/beyond.json).
#include "front/objects/api.h"
#include "front/requests/engine.h"
#include "front/requests/nonblocking.h"

namespace fermata::front {
namespace {

constexpr int kNoStream = 0x3c000000;  // MPIX_STREAM_NULL of MPICH

struct Agreement {
    const void* mine;  // kept by the record
    int* flag;
};

int issue_agreement(CollectiveRecord* record, mpi::RealComm comm, mpi::RealRequest* request) {
    auto* it = reinterpret_cast<Agreement*>(record->args);
    return LOWER(Iallreduce)(it->mine, it->flag, 1, to_real(FM_INT), to_real(FM_BAND), comm, request);
}

int nobody(const char* function, Comm comm, Group* group) {
    Call call(function);
    if (find(comm) == nullptr) return call.finish(FM_ERR_COMM);
    *group = FM_GROUP_EMPTY;
    return FM_SUCCESS;
}

int say(const char* function, Comm comm, int answer, int* place) {
    Call call(function);
    if (find(comm) == nullptr) return call.finish(FM_ERR_COMM);
    *place = answer;
    return FM_SUCCESS;
}

}  // namespace

extern "C" {

int fm_MPIX_Comm_get_failed(Comm comm, Group* failed) { return nobody("MPIX_Comm_get_failed", comm, failed); }
int fm_MPIX_Comm_failure_get_acked(Comm comm, Group* failed) {
    return nobody("MPIX_Comm_failure_get_acked", comm, failed);
}
int fm_MPIX_Comm_failure_ack(Comm comm) {
    int none;
    return say("MPIX_Comm_failure_ack", comm, 0, &none);
}
int fm_MPIX_Comm_ack_failed(Comm comm, int, int* acked) {
    return say("MPIX_Comm_ack_failed", comm, 0, acked);
}
int fm_MPIX_Comm_is_revoked(Comm comm, int* flag) { return say("MPIX_Comm_is_revoked", comm, 0, flag); }

// On an intercommunicator the result is that of the remote group's flags, as a reduction gives it.
int fm_MPIX_Comm_agree(Comm comm, int* flag) {
    const int mine = *flag;
    return fm_Allreduce(&mine, flag, 1, FM_INT, FM_BAND, comm);
}

int fm_MPIX_Comm_iagree(Comm comm, int* flag, mpi::Request* request) {
    Call call("MPIX_Comm_iagree");
    CommObject* c = find(comm);
    if (c == nullptr) return call.finish(FM_ERR_COMM);
    refuse_in_2pc("MPIX_Comm_iagree");
    CollectiveRecord* record = new_collective(issue_agreement, "MPIX_Comm_iagree");
    // The flag is input and result: with a copy of the input the call may be issued again.
    new (record->args) Agreement{keep(record, flag, 1), flag};
    return call.finish(comm, begin_collective(call.record(), c, record, request));
}

int fm_MPIX_Comm_shrink(Comm comm, Comm* made) {
    int rank = 0;
    if (int rc = fm_Comm_rank(comm, &rank)) return rc;
    return fm_Comm_split(comm, 0, rank, made);
}

int fm_MPIX_Comm_test_threadcomm(Comm comm, int* flag) {
    return say("MPIX_Comm_test_threadcomm", comm, 0, flag);
}
int fm_MPIX_Comm_get_stream(Comm comm, int, int* stream) {
    return say("MPIX_Comm_get_stream", comm, kNoStream, stream);
}

int fm_MPIX_GPU_query_support(int, int* supported) {
    *supported = 0;
    return FM_SUCCESS;
}

int fm_MPIX_Info_set_hex(Info info, const char* key, const void* value, int size) {
    constexpr char digits[] = "0123456789abcdef";
    char text[FM_MAX_INFO_VAL];
    const auto* bytes = static_cast<const unsigned char*>(value);
    if (size < 0 || 2 * static_cast<int64_t>(size) >= FM_MAX_INFO_VAL)
        return fm_raise(Kind::none, 0, FM_ERR_INFO_VALUE, "MPIX_Info_set_hex");
    for (int i = 0; i < size; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * size] = 0;
    return fm_Info_set(info, key, text);
}

}  // extern "C"
}  // namespace fermata::front
