// Communicators: their description, the list of those that live, and how one is made of a real one.
#include "front/objects/comm.h"

#include <algorithm>

#include "front/core/library_lock.h"
#include "front/objects/api.h"
#include "front/objects/clock.h"
#include "front/objects/comm_make.h"
#include "front/objects/connected.h"
#include "front/objects/internal.h"
#include "front/objects/uid.h"

namespace fermata::front {
namespace {

constinit Immortal<CommObject> world_storage, self_storage;
CommObject* comms;
uint32_t fresh_counter;
CommObject* dead;  // a stack without a lock: the last reference may go inside the library's lock

void link_comm(CommObject* comm) {
    library_lock.lock();
    comm->next = comms;
    if (comms != nullptr) comms->previous = comm;
    comms = comm;
    library_lock.unlock();
}

// Finds the least of a list that is not empty.
Member least(const Members& members) { return *std::min_element(members.begin(), members.end()); }

}  // namespace

CommObject& comm_world = world_storage.value;
CommObject& comm_self = self_storage.value;

CommObject* first_comm() noexcept { return comms; }

void comm_unlink(CommObject* comm) noexcept {
    library_lock.lock();
    (comm->previous != nullptr ? comm->previous->next : comms) = comm->next;
    if (comm->next != nullptr) comm->next->previous = comm->previous;
    library_lock.unlock();
}

CommObject* take_dead_comms() noexcept { return __atomic_exchange_n(&dead, nullptr, __ATOMIC_ACQUIRE); }

uint64_t fresh_uid() noexcept {
    return uid::fresh(own_rank(), __atomic_add_fetch(&fresh_counter, 1, __ATOMIC_RELAXED));
}

Members clock_members(const CommObject& comm) noexcept {
    if (!comm.inter) return comm.members;
    Members all(comm.low ? comm.members : comm.remote);
    const Members& rest = comm.low ? comm.remote : comm.members;
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
}

void comm_set_sides(CommObject* comm, Members&& members, Members&& remote) noexcept {
    comm->members = static_cast<Members&&>(members);
    comm->remote = static_cast<Members&&>(remote);
    comm->size = static_cast<int32_t>(comm->members.size());
    comm->remote_size = static_cast<int32_t>(comm->remote.size());
    comm->rank = ranks::find(comm->members, own_rank());
    comm->low = comm->inter && least(comm->members) < least(comm->remote);
    comm->stranger = has_stranger(comm->members) || has_stranger(comm->remote);
    comm_count_peers(comm);
}

void comm_count_peers(CommObject* comm) noexcept {
    comm->counted = comm->peers().data();
    comm->counted_size = comm->stranger ? 0 : static_cast<uint32_t>(comm->peers().size());
}

int comm_adopt(RealComm real, bool inter, const CommObject* same_members, CommObject** made) noexcept {
    auto* comm = fm_new<CommObject>();
    comm->real = static_cast<uint64_t>(real);
    comm->inter = inter;
    Members members, remote;
    if (same_members != nullptr) {
        members = same_members->members;
        remote = same_members->remote;
    } else {
        int rc = read_members(real, false, &members);
        if (rc == FM_SUCCESS && inter) rc = read_members(real, true, &remote);
        if (rc != FM_SUCCESS) {
            fm_delete(comm);
            return rc;
        }
    }
    comm_set_sides(comm, static_cast<Members&&>(members), static_cast<Members&&>(remote));
    *made = comm;
    return FM_SUCCESS;
}

void comm_publish(CommObject* comm, uint64_t uid, ErrhandlerObject* errhandler) noexcept {
    comm->uid = uid;
    comm->errhandler = errhandler;
    errhandler_ref(errhandler);
    give_handle(comm);
    comm->stranger ? connection_made(comm) : clock_register(*comm);
    link_comm(comm);
}

uint64_t derived_uid(CommObject& parent, const CommObject& child, uint64_t creation) noexcept {
    Member first = child.inter && !child.low ? child.remote[0] : child.members[0];
    return uid::derived(parent.uid, creation, first);
}

int child_uid(CommObject& parent, CommObject* child, uint64_t creation, uint64_t* uid) noexcept {
    if (parent.stranger) {
        child->origin = parent.origin;
        return uid_of_connected(*child, uid);
    }
    *uid = derived_uid(parent, *child, creation);
    return FM_SUCCESS;
}

// Destruction takes the library's lock and calls the library, and the last reference may be dropped by
// somebody who holds that lock (a drain, a reaper): so the body waits for the next call that creates or frees
// a communicator.
void comm_unref(CommObject* comm) noexcept {
    if (comm->predefined || !drop(comm)) return;
    connection_gone(comm);
    comm->dead = true;
    CommObject* top = __atomic_load_n(&dead, __ATOMIC_RELAXED);
    do comm->next_leaving = top;
    while (!__atomic_compare_exchange_n(&dead, &top, comm, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

int comm_make_private(CommObject* parent, CommObject** made) noexcept {
    RealComm real{};
    if (int rc = LOWER(Comm_dup)(RealComm{parent->real}, &real)) return rc;
    uint64_t creation = ++parent->creations;
    if (int rc = comm_adopt(real, false, parent, made)) return rc;
    comm_publish(*made, derived_uid(*parent, **made, creation), &errors_return);
    return FM_SUCCESS;
}

void comm_drop_private(CommObject* comm) noexcept { comm_unref(comm); }

int agree(CommObject* comm, int rc) noexcept {
    int worst = 0;
    int told = LOWER(Allreduce)(&rc, &worst, 1, to_real(FM_INT), to_real(FM_MAX), RealComm{comm->real});
    return told != FM_SUCCESS ? told : worst;
}

}  // namespace fermata::front
