// Communicators: how they come, are found again at restart, and go.
#include "front/objects/comm.h"

#include "front/core/collective.h"
#include "front/objects/api.h"
#include "front/objects/comm_create.h"
#include "front/objects/connected.h"
#include "front/objects/internal.h"
#include "front/objects/uid.h"
#include "front/p2p/engine.h"
#include "front/p2p/p2p.h"
#include "front/wrappers/nonblocking.h"

namespace fermata::front {
namespace {

constinit Immortal<CommObject> world_storage, self_storage;
CommObject* comms;
uint32_t fresh_counter;
SpinLock leaving_lock;
CommObject* leaving;  // freed by the application, others may not have freed it yet
CommObject* dead;     // a stack without a lock: the last reference may go inside the engine's lock

void link_comm(CommObject* comm) {
    p2p_lock();
    comm->next = comms;
    if (comms != nullptr) comms->previous = comm;
    comms = comm;
    p2p_unlock();
}

void unlink_comm(CommObject* comm) {
    p2p_lock();
    (comm->previous != nullptr ? comm->previous->next : comms) = comm->next;
    if (comm->next != nullptr) comm->next->previous = comm->previous;
    p2p_unlock();
}

int32_t least(const Ranks& ranks) {
    int32_t result = ranks.empty() ? 0 : ranks[0];
    for (int32_t world : ranks)
        if (world < result) result = world;
    return result;
}

// The last reference is gone.
void destroy(CommObject* comm) {
    unlink_comm(comm);
    p2p_comm_gone(*comm);
    if (comm->clock != nullptr) clock_unregister(*comm);
    take_handle(comm);
    RealComm real{comm->real};
    if (comm->real != 0) LOWER(Comm_free)(&real);
    errhandler_unref(comm->errhandler);
    fm_delete(comm->topology);
    fm_delete(comm);
}

}  // namespace

CommObject& comm_world = world_storage.value;
CommObject& comm_self = self_storage.value;

CommObject* first_comm() noexcept { return comms; }

uint64_t fresh_uid() noexcept {
    return uid::fresh(front.world_rank, __atomic_add_fetch(&fresh_counter, 1, __ATOMIC_RELAXED));
}

Ranks clock_members(const CommObject& comm) noexcept {
    if (!comm.inter) return comm.members;
    Ranks all(comm.low ? comm.members : comm.remote);
    const Ranks& rest = comm.low ? comm.remote : comm.members;
    all.insert(all.end(), rest.begin(), rest.end());
    return all;
}

void comm_set_sides(CommObject* comm, Ranks&& members, Ranks&& remote) noexcept {
    comm->members = static_cast<Ranks&&>(members);
    comm->remote = static_cast<Ranks&&>(remote);
    comm->size = static_cast<int32_t>(comm->members.size());
    comm->remote_size = static_cast<int32_t>(comm->remote.size());
    comm->rank = ranks::find(comm->members, front.world_rank);
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
    Ranks members, remote;
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
    comm_set_sides(comm, static_cast<Ranks&&>(members), static_cast<Ranks&&>(remote));
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
    int32_t first = child.inter && !child.low ? child.remote[0] : child.members[0];
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

// Destruction takes the engine's lock and calls the library, and the last reference may be dropped by
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

void comms_tidy(Call& call) noexcept {
    if (leaving != nullptr) {
        SpinGuard guard(leaving_lock);
        for (CommObject** link = &leaving; *link != nullptr;) {
            CommObject* comm = *link;
            auto* farewell = static_cast<Request*>(comm->farewell);
            bool complete = farewell->state == State::complete;
            if (!complete) {
                SlowGuard slow(call.record());
                complete = advance(farewell, slot_of(call.record()));
            }
            // Told: from here on a checkpoint obliges the others to complete it too.
            if (!complete || !may_tell(farewell, call.record(), false)) {
                link = &comm->next_leaving;
                continue;
            }
            *link = comm->next_leaving;
            release_request(farewell);  // with its reference to the communicator
        }
    }
    for (CommObject* comm = __atomic_exchange_n(&dead, nullptr, __ATOMIC_ACQUIRE); comm != nullptr;) {
        CommObject* following = comm->next_leaving;
        destroy(comm);
        comm = following;
    }
    connections_tidy();
}

bool comms_leaving(Call& call) noexcept {
    comms_tidy(call);
    return leaving != nullptr;
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

namespace {

int check_leaving(Call& call, Comm handle) {
    CommObject* comm = find(handle);
    if (comm == nullptr || comm->predefined || comm->freed) return call.finish(FM_ERR_COMM);
    if (int rc = attributes_delete_all({Owner::comm, comm->handle}, &comm->attributes))
        return call.finish(handle, rc);
    return FM_SUCCESS;
}

// No clock has to be agreed on, and strangers would not understand a barrier of ours.
int leave_strangers(Call& call, Comm* handle) {
    CommObject* comm = find(*handle);
    comm->freed = true;
    take_handle(comm);
    comm_unref(comm);
    *handle = FM_COMM_NULL;
    comms_tidy(call);
    return FM_SUCCESS;
}

// MPI_Comm_free. Nobody may forget the clock of a communicator that others still use for collectives, and yet
// programs rely on this call not to wait (MPICH's cmfree test): so it begins a barrier, and who finds it
// complete, at some later call, destroys the object. With requests still open the object lives on until the
// last is done; freeing the real one late is a local matter in MPICH and Open MPI.
int begin_leaving(Call& call, Comm* handle) {
    CommObject* comm = find(*handle);
    if (comm->stranger) return leave_strangers(call, handle);
    CollectiveRecord* record = new_collective(
        [](CollectiveRecord*, RealComm real, RealRequest* request) { return LOWER(Ibarrier)(real, request); },
        "MPI_Comm_free");
    mpi::Request request{};
    if (int rc = begin_collective(call.record(), comm, record, &request)) return call.finish(*handle, rc);
    Request* farewell = find_request(request);
    farewell->flags |= kInternal;
    comm->farewell = farewell;
    comm->freed = true;
    {
        SpinGuard guard(leaving_lock);
        comm->next_leaving = leaving;
        leaving = comm;
    }
    take_handle(comm);  // the object may live on, its name not: copies of the handle are invalid
    comm_unref(comm);
    *handle = FM_COMM_NULL;
    comms_tidy(call);
    return FM_SUCCESS;
}

// MPI_Comm_disconnect waits for the others.
int leave_together(Call& call, Comm* handle) {
    CommObject* comm = find(*handle);
    if (comm->stranger) {
        RealComm real{comm->real};
        if (int rc = LOWER(Comm_disconnect)(&real)) return call.finish(*handle, rc);
        comm->real = 0;
        connection_gone(comm);
        return leave_strangers(call, handle);
    }
    {
        CollectiveScope scope(call, *comm);
        int rc = LOWER(Barrier)(RealComm{comm->real});
        if (rc != FM_SUCCESS) {
            scope.end();
            return call.finish(*handle, rc);
        }
    }
    comm->freed = true;
    comm_unref(comm);
    *handle = FM_COMM_NULL;
    comms_tidy(call);
    return FM_SUCCESS;
}

int duplicate(Call& call, Comm comm, const InfoPairs* hints, Comm* newcomm) {
    CommObject* parent = find(comm);
    if (parent == nullptr) return call.finish(FM_ERR_COMM);
    comms_tidy(call);
    CommObject* made = nullptr;
    {
        CollectiveScope scope(call, *parent);
        uint64_t creation = ++parent->creations;
        RealComm real{};
        // Hints are not for the library: it could take "no wildcards" at its word, and a drain uses them.
        int rc = LOWER(Comm_dup)(RealComm{parent->real}, &real);
        if (rc == FM_SUCCESS) rc = comm_adopt(real, parent->inter, parent, &made);
        if (rc != FM_SUCCESS) {
            scope.end();
            return call.finish(comm, rc);
        }
        if (parent->topology != nullptr) made->topology = fm_new<Topology>(*parent->topology);
        if (hints != nullptr) made->info = *hints;
        uint64_t uid = 0;
        child_uid(*parent, made, creation, &uid);  // asks nobody: the members are the parent's
        comm_publish(made, uid, parent->errhandler);
    }
    *newcomm = Comm{made->handle};
    if (int rc = attributes_copy({Owner::comm, parent->handle}, parent->attributes, &made->attributes)) {
        // As MPICH does: the caller hears of the error and has no communicator.
        *newcomm = FM_COMM_NULL;
        return call.finish(comm, rc);
    }
    return FM_SUCCESS;
}

// The real communicator appears in the object when the request is complete. Not re-issuable: once begun by
// one member, a checkpoint waits until all have begun and completed it, so restart finds it like any other.
int begin_duplicate(Call& call, Comm comm, const InfoPairs* hints, Comm* newcomm, mpi::Request* request) {
    *newcomm = FM_COMM_NULL;
    refuse_in_2pc("MPI_Comm_idup");
    CommObject* parent = find(comm);
    if (parent == nullptr) return call.finish(FM_ERR_COMM);
    auto* made = fm_new<CommObject>();
    made->inter = parent->inter;
    comm_set_sides(made, Ranks(parent->members), Ranks(parent->remote));
    if (parent->topology != nullptr) made->topology = fm_new<Topology>(*parent->topology);
    if (hints != nullptr) made->info = *hints;
    uint64_t creation = ++parent->creations;
    // Open MPI gives the handle at once, of a communicator that it has not made yet: messages must not be
    // pulled from that one (4.1.4 crashes). So it waits in the record, which the library may write to until
    // the end.
    struct Birth {
        CommObject* made;
        uint64_t real;
    };
    CollectiveRecord* record = new_collective(
        [](CollectiveRecord* self, RealComm real, RealRequest* real_request) {
            auto* birth = reinterpret_cast<Birth*>(self->args);
            return LOWER(Comm_idup)(real, reinterpret_cast<RealComm*>(&birth->real), real_request);
        },
        "MPI_Comm_idup");
    record->reissuable = false;
    record->done = [](CollectiveRecord* self) {
        auto* birth = reinterpret_cast<Birth*>(self->args);
        birth->made->real = birth->real;
    };
    new (record->args) Birth{made, 0};
    // Published afterwards: the thread may be held at the gate in here, and a restart must not find half of
    // it.
    if (int rc = begin_collective(call.record(), parent, record, request)) {
        fm_delete(made->topology);
        fm_delete(made);
        return call.finish(comm, rc);
    }
    uint64_t uid = 0;
    child_uid(*parent, made, creation, &uid);  // asks nobody
    comm_publish(made, uid, parent->errhandler);
    *newcomm = Comm{made->handle};
    return call.finish(comm,
                       attributes_copy({Owner::comm, parent->handle}, parent->attributes, &made->attributes));
}

const InfoPairs* hints_of(Info info) {
    InfoObject* object = find(info);
    return object != nullptr ? &object->pairs : nullptr;
}

}  // namespace

extern "C" {

int fm_Comm_rank(Comm comm, int* rank) {
    Call call("MPI_Comm_rank");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    *rank = object->rank;
    return FM_SUCCESS;
}

int fm_Comm_size(Comm comm, int* size) {
    Call call("MPI_Comm_size");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    *size = object->size;
    return FM_SUCCESS;
}

int fm_Comm_remote_size(Comm comm, int* size) {
    Call call("MPI_Comm_remote_size");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    if (!object->inter) return call.finish(comm, FM_ERR_COMM);
    *size = object->remote_size;
    return FM_SUCCESS;
}

int fm_Comm_test_inter(Comm comm, int* flag) {
    Call call("MPI_Comm_test_inter");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    *flag = object->inter;
    return FM_SUCCESS;
}

int fm_Comm_group(Comm comm, Group* group) {
    Call call("MPI_Comm_group");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    *group = Group{make_group(Ranks(object->members))};
    return FM_SUCCESS;
}

int fm_Comm_remote_group(Comm comm, Group* group) {
    Call call("MPI_Comm_remote_group");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    if (!object->inter) return call.finish(comm, FM_ERR_COMM);
    *group = Group{make_group(Ranks(object->remote))};
    return FM_SUCCESS;
}

int fm_Comm_compare(Comm comm1, Comm comm2, int* result) {
    Call call("MPI_Comm_compare");
    CommObject *a = find(comm1), *b = find(comm2);
    if (a == nullptr || b == nullptr) return call.finish(FM_ERR_COMM);
    if (a == b) {
        *result = FM_IDENT;
        return FM_SUCCESS;
    }
    *result = FM_UNEQUAL;
    if (a->inter == b->inter) {
        auto local = ranks::compare(a->members, b->members);
        auto remote = ranks::compare(a->remote, b->remote);
        if (local == ranks::Relation::same && remote == ranks::Relation::same)
            *result = FM_CONGRUENT;
        else if (local != ranks::Relation::different && remote != ranks::Relation::different)
            *result = FM_SIMILAR;
    }
    return FM_SUCCESS;
}

int fm_Comm_get_name(Comm comm, char* comm_name, int* resultlen) {
    Call call("MPI_Comm_get_name");
    CommObject* object = find(comm);
    if (object == nullptr && comm != FM_COMM_NULL) return call.finish(FM_ERR_COMM);
    Text null_name("MPI_COMM_NULL");  // MPI-4.0 7.8
    const Text& name = object != nullptr ? object->name : null_name;
    __builtin_memcpy(comm_name, name.c_str(), name.size() + 1);
    *resultlen = static_cast<int>(name.size());
    return FM_SUCCESS;
}

int fm_Comm_set_name(Comm comm, const char* comm_name) {
    Call call("MPI_Comm_set_name");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    size_t length = __builtin_strlen(comm_name);
    object->name.assign(comm_name, length < FM_MAX_OBJECT_NAME ? length : FM_MAX_OBJECT_NAME - 1);
    return FM_SUCCESS;
}

int fm_Comm_get_info(Comm comm, Info* info_used) {
    Call call("MPI_Comm_get_info");
    CommObject* object = find(comm);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    *info_used = Info{make_info(object->info)};
    return FM_SUCCESS;
}

int fm_Comm_set_info(Comm comm, Info info) {
    Call call("MPI_Comm_set_info");
    CommObject* object = find(comm);
    InfoObject* hints = find(info);
    if (object == nullptr) return call.finish(FM_ERR_COMM);
    if (hints == nullptr) return call.finish(comm, FM_ERR_INFO);
    for (const InfoPair& pair : hints->pairs) info_put(&object->info, pair.key.c_str(), pair.value.c_str());
    return FM_SUCCESS;
}

int fm_Comm_dup(Comm comm, Comm* newcomm) {
    Call call("MPI_Comm_dup");
    CommObject* parent = find(comm);
    return duplicate(call, comm, parent != nullptr ? &parent->info : nullptr, newcomm);
}

int fm_Comm_dup_with_info(Comm comm, Info info, Comm* newcomm) {
    Call call("MPI_Comm_dup_with_info");
    return duplicate(call, comm, hints_of(info), newcomm);
}

int fm_Comm_idup(Comm comm, Comm* newcomm, mpi::Request* request) {
    Call call("MPI_Comm_idup");
    CommObject* parent = find(comm);
    return begin_duplicate(call, comm, parent != nullptr ? &parent->info : nullptr, newcomm, request);
}

int fm_Comm_idup_with_info(Comm comm, Info info, Comm* newcomm, mpi::Request* request) {
    Call call("MPI_Comm_idup_with_info");
    return begin_duplicate(call, comm, hints_of(info), newcomm, request);
}

int fm_Comm_free(Comm* comm) {
    Call call("MPI_Comm_free");
    int rc = check_leaving(call, *comm);
    return rc != FM_SUCCESS ? rc : begin_leaving(call, comm);
}

int fm_Comm_disconnect(Comm* comm) {
    Call call("MPI_Comm_disconnect");
    int rc = check_leaving(call, *comm);
    return rc != FM_SUCCESS ? rc : leave_together(call, comm);
}

}  // extern "C"
}  // namespace fermata::front
