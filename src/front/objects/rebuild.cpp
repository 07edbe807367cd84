// The turning points of a rank's life: before the image is written, and after it was mapped again.
//
// Rebuild is collective over all ranks of the job, on a fresh lower half. It reads as a list: predefined
// handles, datatypes, operations, communicators, grids, windows, files. Communicators are made from
// MPI_COMM_WORLD in the order of their uids: every rank walks its own subset of one global order, so
// overlapping communicators cannot wait for each other in a circle.
#include <algorithm>

#include "front/core/line.h"
#include "front/objects/api.h"
#include "front/objects/connected.h"
#include "front/objects/grids.h"
#include "front/objects/internal.h"
#include "front/objects/objects.h"
#include "front/objects/orphans.h"
#include "front/objects/topology.h"
#include "replay/exchange.h"

namespace fermata::front {
namespace {

int cannot_make(Line& line, const char* what, int rc) {
    line << "cannot make " << what << " again: " << error_text(rc);
    return 1;
}

// Tags only have to be legal: creations follow one another.
int tag_of(uint64_t uid) { return static_cast<int>(uid & 0x3fff); }

int make_group_comm(uint64_t uid, const Members& members, RealComm* made) {
    if (members.size() == 1) return LOWER(Comm_dup)(to_real(FM_COMM_SELF), made);
    TempGroup group(members);
    if (group.status() != FM_SUCCESS) return group.status();
    return LOWER(Comm_create_group)(to_real(FM_COMM_WORLD), group, tag_of(uid), made);
}

// Communicators that some member has freed. A member that found the farewell barrier complete has forgotten
// the object, and then it is complete at all: nobody needs a real one any more. While nobody has, all members
// still have the object, freed or not, and it is made again (others may still use it). So: who has those that
// anybody freed?
int choose_leaving(const Vec<CommObject*>& all, Vec<CommObject*>* chosen) {
    RealComm world{comm_world.real};  // not by its handle, which is there from MPI_Init on
    Vec<uint64_t> mine;
    for (CommObject* comm : all)
        if (comm->freed && !comm->dead) mine.push_back(comm->uid);
    int count = static_cast<int>(mine.size()), most = 0;
    if (int rc = LOWER(Allreduce)(&count, &most, 1, to_real(FM_INT), to_real(FM_MAX), world)) return rc;
    Vec<uint64_t> uids;
    if (most != 0) {
        mine.resize(static_cast<size_t>(most), 0);
        uids.resize(static_cast<size_t>(most) * static_cast<size_t>(front.world_size), 0);
        if (int rc = LOWER(Allgather)(mine.data(), most, to_real(FM_UINT64_T), uids.data(), most,
                                      to_real(FM_UINT64_T), world))
            return rc;
        std::sort(uids.begin(), uids.end());
        uids.erase(std::unique(uids.begin(), uids.end()), uids.end());
    }
    Vec<int> here(uids.size(), 0), holders(uids.size(), 0);
    auto place = [&uids](uint64_t uid) -> size_t {
        auto at = std::lower_bound(uids.begin(), uids.end(), uid);
        return at != uids.end() && *at == uid ? static_cast<size_t>(at - uids.begin()) : uids.size();
    };
    for (CommObject* comm : all)
        if (size_t at = place(comm->uid); at != uids.size() && !comm->dead) here[at] = 1;
    if (!uids.empty())
        if (int rc = LOWER(Allreduce)(here.data(), holders.data(), static_cast<Count>(uids.size()),
                                      to_real(FM_INT), to_real(FM_SUM), world))
            return rc;
    for (CommObject* comm : all) {
        size_t at = place(comm->uid);
        bool everywhere = at == uids.size() || holders[at] == comm->size + comm->remote_size;
        if (!comm->dead && everywhere) chosen->push_back(comm);
        // Freed by a member that has forgotten it, and alive here: cannot be.
        if (!comm->dead && !everywhere && !comm->freed) return FM_ERR_INTERN;
    }
    return FM_SUCCESS;
}

int rebuild_types(Line& failure) {
    for (TypeObject* type = first_type(); type != nullptr; type = type->next) {
        if (int rc = type_make_real(type)) return cannot_make(failure, "a datatype", rc);
        type_note_real(type);
    }
    return 0;
}

int rebuild_ops(Line& failure) {
    for (OpObject* op = first_op(); op != nullptr; op = op->next)
        if (int rc = op_make_real(op)) return cannot_make(failure, "a reduction operation", rc);
    return 0;
}

int rebuild_comms(Line& failure) {
    Vec<CommObject*> all, list;
    for (CommObject* comm = first_comm(); comm != nullptr; comm = comm->next) {
        comm->real = 0;
        all.push_back(comm);
    }
    if (int rc = choose_leaving(all, &list)) return cannot_make(failure, "communicators", rc);
    std::sort(list.begin(), list.end(), [](CommObject* a, CommObject* b) { return a->uid < b->uid; });
    for (CommObject* comm : list)
        if (int rc = comm_make_real(comm)) return cannot_make(failure, "a communicator", rc);
    return 0;
}

CommObject* comm_with(uint64_t uid) {
    for (CommObject* comm = first_comm(); comm != nullptr; comm = comm->next)
        if (comm->uid == uid) return comm;
    return nullptr;
}

// Was the communicator's creation told to some members only?
bool made_by_some(const replay::Orders& orders, const replay::CommOrders& comm) {
    for (const replay::CommOrders& parent : orders.comms)
        if (parent.uid == comm.parent)
            for (const replay::Planned& planned : parent.plan)
                if (planned.instance == comm.made_as) return true;
    return false;
}

// One that the message logs name. Its topology is known to those that were told the creation: where some were
// not, it is made without.
int rebuild_named(const replay::Orders& orders, const replay::CommOrders& one) {
    const uint64_t uid = replay::value(one.uid);
    CommObject* comm = comm_with(uid);
    if (comm != nullptr && !made_by_some(orders, one)) return comm_make_real(comm);
    Members members;
    for (Rank rank : one.members) members.push_back(Member(rank));
    RealComm made{};
    if (int rc = make_group_comm(uid, members, &made)) return rc;
    if (comm == nullptr)
        orphan_kept(uid, static_cast<uint64_t>(made));
    else
        comm->real = static_cast<uint64_t>(made);
    return FM_SUCCESS;
}

// They come in one order in all members.
int rebuild_ordered_comms(const replay::Orders& orders, Line& failure) {
    orphans_forgotten();
    for (CommObject* comm = first_comm(); comm != nullptr; comm = comm->next) comm->real = 0;
    for (const replay::CommOrders& one : orders.comms) {
        const uint64_t uid = replay::value(one.uid);
        if (uid == comm_world.uid || uid == comm_self.uid) continue;
        if (int rc = rebuild_named(orders, one)) return cannot_make(failure, "a communicator", rc);
    }
    return 0;
}

template <typename T, typename Make>
int rebuild_in_order(T* first, Make&& make) {
    Vec<T*> list;
    for (T* object = first; object != nullptr; object = object->next) list.push_back(object);
    std::sort(list.begin(), list.end(), [](T* a, T* b) { return a->comm->uid < b->comm->uid; });
    for (T* object : list)
        if (int rc = make(object)) return rc;
    return FM_SUCCESS;
}

}  // namespace

int comm_make_real(CommObject* comm) noexcept {
    RealComm made{};
    if (int rc = make_group_comm(comm->uid, comm->members, &made)) return rc;
    if (comm->inter) {
        RealComm local = made;
        int rc =
            LOWER(Intercomm_create)(local, 0, to_real(FM_COMM_WORLD),
                                    physical_rank(comm->remote[0].rank()).number(), tag_of(comm->uid), &made);
        LOWER(Comm_free)(&local);
        if (rc != FM_SUCCESS) return rc;
    } else if (comm->topology != nullptr) {
        RealComm base = made;
        int rc = topology_apply(*comm->topology, base, &made);
        LOWER(Comm_free)(&base);
        if (rc != FM_SUCCESS) return rc;
    }
    comm->real = static_cast<uint64_t>(made);
    int rank = -1;
    if (int rc = LOWER(Comm_rank)(made, &rank)) return rc;
    return rank == comm->rank ? FM_SUCCESS : FM_ERR_RANK;
}

int objects_rebuild(const replay::Orders* orders, char* error, size_t size) noexcept {
    Line failure(error, size);
    objects_boot();  // nothing was there yet if this rank has not called MPI_Init
    predefined_refresh(false);
    if (rebuild_types(failure)) return 1;
    if (rebuild_ops(failure)) return 1;
    if (orders != nullptr ? rebuild_ordered_comms(*orders, failure) : rebuild_comms(failure)) return 1;
    if (int rc = grids_share()) return cannot_make(failure, "what MPI_Dims_create has answered", rc);
    if (int rc = rebuild_in_order(first_win(), win_make_real)) return cannot_make(failure, "a window", rc);
    if (int rc = rebuild_in_order(first_file(), file_make_real))
        return cannot_make(failure, "an open file", rc);
    return 0;
}

int objects_before_save() noexcept {
    int rc = rebuild_in_order(first_win(), win_before_save);
    int file_rc = rebuild_in_order(first_file(), file_before_save);
    return rc != FM_SUCCESS ? rc : file_rc;
}

int objects_refuse(char* why, size_t size) noexcept {
    return connected_refuse(why, size) || files_refuse(why, size) ? 1 : 0;
}

const char* objects_give_up() noexcept {
    return connected_now() ? "the program became connected to processes outside of the job meanwhile"
                           : nullptr;
}

void objects_finalize() noexcept {
    // MPI-4.0 11.2.4: the attributes of MPI_COMM_SELF go first, last set first.
    attributes_delete_all({Owner::comm, comm_self.handle}, &comm_self.attributes);
    attributes_delete_all({Owner::comm, comm_world.handle}, &comm_world.attributes);
}

}  // namespace fermata::front
