// Generalized active target synchronisation: MPI_Win_post, _start, _complete, _wait and _test.
//
// The library's own cannot be saved: an epoch ends with calls of both sides, and a checkpoint may find any
// part of them made. So an epoch is here what can be saved anyway: MPI_Win_post and MPI_Win_complete send a
// message of no bytes on the window's private communicator (counted, drained, kept like any other), and the
// accesses between MPI_Win_start and MPI_Win_complete are made under shared locks, which a restart takes
// again. The locks never wait: whoever may hold an exclusive one had to give it back before its target posts.
#include "front/objects/api.h"
#include "front/objects/internal.h"
#include "front/requests/collective.h"
#include "front/requests/operations.h"

namespace fermata::front {
namespace {

enum Tag { kPosted = 1, kCompleted = 2 };

// Members of the group as ranks of the window.
int members_of(const WinObject* win, Group group, Vec<int>* ranks) {
    GroupObject* object = find(group);
    if (object == nullptr) return FM_ERR_GROUP;
    ranks::Position position(win->comm->members);
    for (Member member : object->members) {
        int rank = position.of(member);
        if (rank < 0) return FM_ERR_GROUP;
        ranks->push_back(rank);
    }
    return FM_SUCCESS;
}

int message(Call& call, What what, const WinObject* win, int peer, Tag tag) {
    RequestObject* r = describe(what, nullptr, 0, FM_BYTE, peer, tag, win->comm);
    if (peer != win->comm->rank) return run_blocking(call, r, nullptr);
    // A send to oneself may end only when it is received: nobody waits for it.
    if (what == What::send) {
        int rc = begin(call, r);
        if (rc == FM_SUCCESS) adopt_orphan(r);
        return rc;
    }
    int rc = run_blocking(call, r, nullptr);
    Careful careful(call.record());
    SpinGuard guard(library_lock);
    reap_orphans(slot_of(call.record()));
    return rc;
}
int messages(Call& call, What what, const WinObject* win, const Vec<int>& peers, Tag tag) {
    for (int peer : peers)
        if (int rc = message(call, what, win, peer, tag)) return rc;
    return FM_SUCCESS;
}

}  // namespace

extern "C" {

int fm_Win_start(Group group, int, Win win) {
    Call call("MPI_Win_start");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    Vec<int> targets;
    int rc = object->started || object->passive() ? FM_ERR_RMA_SYNC : members_of(object, group, &targets);
    // MPI allows this call to wait for the posts, as the libraries do.
    if (rc == FM_SUCCESS) rc = messages(call, What::recv, object, targets, kPosted);
    if (rc != FM_SUCCESS) return call.finish(win, rc);
    {
        AccessScope scope(call, true);
        object->targets = static_cast<Vec<int>&&>(targets);
        object->started = true;
        epochs_add(1);
        rc = object->alone ? FM_SUCCESS : win_lock_started(object);
    }
    return call.finish(win, rc);
}

int fm_Win_complete(Win win) {
    Call call("MPI_Win_complete");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    if (!object->started) return call.finish(win, FM_ERR_RMA_SYNC);
    Vec<int> targets;
    int rc = FM_SUCCESS;
    {
        AccessScope scope(call, true);
        targets = static_cast<Vec<int>&&>(object->targets);
        object->targets = {};
        object->started = false;
        epochs_add(-1);
        for (size_t i = 0; i < targets.size() && !object->alone && rc == FM_SUCCESS; i++)
            rc = LOWER(Win_unlock)(targets[i], RealWin{object->real});
    }
    if (rc == FM_SUCCESS) rc = messages(call, What::send, object, targets, kCompleted);
    return call.finish(win, rc);
}

int fm_Win_post(Group group, int, Win win) {
    Call call("MPI_Win_post");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    Vec<int> origins;
    int rc = object->posted ? FM_ERR_RMA_SYNC : members_of(object, group, &origins);
    if (rc != FM_SUCCESS) return call.finish(win, rc);
    object->posted = true;
    object->origins = static_cast<Vec<int>&&>(origins);
    epochs_add(1);
    return call.finish(win, messages(call, What::send, object, object->origins, kPosted));
}

int fm_Win_wait(Win win) {
    Call call("MPI_Win_wait");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    if (!object->posted) return call.finish(win, FM_ERR_RMA_SYNC);
    int rc = FM_SUCCESS;
    // An origin that MPI_Win_test has received is no longer waited for.
    while (rc == FM_SUCCESS && !object->origins.empty()) {
        rc = message(call, What::recv, object, object->origins.back(), kCompleted);
        if (rc == FM_SUCCESS) object->origins.pop_back();
    }
    if (rc == FM_SUCCESS) {
        object->posted = false;
        epochs_add(-1);
    }
    return call.finish(win, rc);
}

int fm_Win_test(Win win, int* flag) {
    WinObject* object = nullptr;
    {
        Call call("MPI_Win_test");
        object = find(win);
        if (object == nullptr) return call.finish(FM_ERR_WIN);
        *flag = 0;
        if (!object->posted) return call.finish(win, FM_ERR_RMA_SYNC);
    }
    Comm comm{object->comm->handle};
    while (!object->origins.empty()) {
        int arrived = 0;
        int rc = fm_Iprobe(object->origins.back(), kCompleted, comm, &arrived, nullptr);
        if (rc != FM_SUCCESS || !arrived) return rc;
        Call call("MPI_Win_test");
        rc = message(call, What::recv, object, object->origins.back(), kCompleted);
        if (rc != FM_SUCCESS) return call.finish(win, rc);
        object->origins.pop_back();
    }
    Call call("MPI_Win_test");
    object->posted = false;
    epochs_add(-1);
    *flag = 1;
    return FM_SUCCESS;
}

}  // extern "C"
}  // namespace fermata::front
