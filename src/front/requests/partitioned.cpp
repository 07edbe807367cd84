#include "front/requests/partitioned.h"

#include "front/requests/operations.h"

namespace fermata::front {
namespace {

// Unlike tests and waits, several threads may ask for partitions of one request at once: one at a time ends
// it.
SpinLock looking;

int ready(Call& call, RequestObject* r, int partitions) noexcept {
    if (r == nullptr || r->what != What::partitioned_send || r->state != State::active) return FM_ERR_REQUEST;
    if (partitions == 0 || __atomic_sub_fetch(&r->partitions->left, partitions, __ATOMIC_ACQ_REL) != 0)
        return 0;
    return begin_send(call, r);
}

int init(What what, const void* buf, int partitions, Count count, Datatype type, int peer, int tag, Comm comm,
         mpi::Request* request) noexcept {
    CommObject* c = find(comm);
    if (c == nullptr) return FM_ERR_COMM;
    if (find(type) == nullptr) return FM_ERR_TYPE;
    if (partitions <= 0 || count < 0) return FM_ERR_COUNT;
    RequestObject* r = describe(what, buf, count * partitions, type, peer, tag, c);
    make_persistent(r);
    if (what == What::partitioned_send) r->partitions = fm_new<Partitions>(Partitions{partitions, 0});
    *request = handle_of(r);
    return 0;
}

}  // namespace

extern "C" {

int fm_Psend_init(const void* buf, int partitions, Count count, Datatype datatype, int dest, int tag,
                  Comm comm, Info, mpi::Request* request) {
    Call call("MPI_Psend_init");
    return call.finish(
        comm, init(What::partitioned_send, buf, partitions, count, datatype, dest, tag, comm, request));
}

int fm_Precv_init(void* buf, int partitions, Count count, Datatype datatype, int source, int tag, Comm comm,
                  Info, mpi::Request* request) {
    Call call("MPI_Precv_init");
    return call.finish(comm, init(What::recv, buf, partitions, count, datatype, source, tag, comm, request));
}

int fm_Pready(int, mpi::Request request) {
    Call call("MPI_Pready");
    return call.finish(ready(call, find_request(request), 1));
}
int fm_Pready_range(int low, int high, mpi::Request request) {
    Call call("MPI_Pready_range");
    return call.finish(ready(call, find_request(request), high - low + 1));
}
int fm_Pready_list(int length, const int*, mpi::Request request) {
    Call call("MPI_Pready_list");
    return call.finish(ready(call, find_request(request), length));
}

int fm_Parrived(mpi::Request request, int, int* flag) {
    Call call("MPI_Parrived");
    RequestObject* r = find_request(request);
    if (r == nullptr || r->what != What::recv) return call.finish(FM_ERR_REQUEST);
    if (pending_checkpoint()) {
        Careful careful(call.record());
        pull(call.record(), slot_of(call.record()));
    }
    bool here;
    {
        SpinGuard alone(looking);
        LockIfCareful guard(call.record());
        here = advance(r, slot_of(call.record()));
    }
    *flag = here ? 1 : 0;
    if (!here) poll_failed(call);
    return 0;
}

}  // extern "C"

}  // namespace fermata::front
