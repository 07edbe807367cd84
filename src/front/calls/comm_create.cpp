// Creation of communicators from others and from groups.
#include "front/calls/comm_create.h"

#include <algorithm>

#include "front/core/bridge.h"
#include "front/objects/api.h"
#include "front/objects/clock.h"
#include "front/objects/internal.h"
#include "front/objects/uid.h"
#include "front/requests/synchronous.h"

namespace fermata::front {
namespace {

// A collective among processes that have no communicator of their own for it.
clock::Comm* group_call(uint64_t parent, const Members& members, int tag) {
    auto id = clock::pseudo_uid(clock::Uid{parent}, uid::hash_of(members), tag);
    const Vec<clock::Rank> numbers = clock_numbers(members);
    return rank_clock().register_group_call(id, numbers.data(), static_cast<int32_t>(numbers.size()));
}

// Making a communicator of a group, or between two groups, takes messages of the program's own kind on the
// parent (Open MPI's with the very tag; ours between leaders). A member that still waits at its gate pulls
// messages, and would take those. So they travel on a communicator that nobody pulls from and that has all
// processes. Calls at the same time must not mix: the parent goes into the tag.
RealComm private_world() noexcept {
    uint64_t twin = bridge()->private_world;
    return twin != 0 ? RealComm{twin}
                     : to_real(FM_COMM_WORLD);  // 0: a unit test's lower half, where nobody pulls
}
int private_tag(uint64_t parent, int tag) noexcept {
    return static_cast<int>((uid::mix(parent) ^ static_cast<uint32_t>(tag)) % kReceiptTag);
}

int create_from_group(Call& call, CommObject* parent, const Members& members, int tag,
                      ErrhandlerObject* errhandler, Comm* newcomm) {
    *newcomm = FM_COMM_NULL;
    if (members.empty() || ranks::find(members, own_rank()) < 0) return FM_SUCCESS;
    if (has_stranger(members)) return FM_ERR_GROUP;
    CollectiveScope scope(call, group_call(parent->uid, members, tag));
    TempGroup group(members);
    int rc = group.status();
    RealComm real{};
    if (rc == FM_SUCCESS)
        rc = LOWER(Comm_create_group)(private_world(), group, private_tag(parent->uid, tag), &real);
    CommObject* made = nullptr;
    if (rc == FM_SUCCESS) rc = comm_adopt(real, false, nullptr, &made);
    uint64_t id = fresh_uid();
    if (rc == FM_SUCCESS) rc = LOWER(Bcast)(&id, sizeof id, to_real(FM_BYTE), 0, real);
    if (rc == FM_SUCCESS) {
        comm_publish(made, id, errhandler);
        *newcomm = Comm{made->handle};
    }
    return rc;
}

// ---- among strangers: the library's own way, of which the other side has the other half

int name_and_publish(CommObject* made, const char* origin, ErrhandlerObject* errhandler, Comm* newcomm) {
    uint64_t uid = 0;
    if (int rc = uid_of_connected(*made, &uid)) return rc;
    made->origin = origin;
    comm_publish(made, uid, errhandler);
    *newcomm = Comm{made->handle};
    return FM_SUCCESS;
}

int create_group_with_strangers(CommObject* parent, const Members& members, int tag, Comm* newcomm) {
    if (ranks::find(members, own_rank()) < 0) return FM_SUCCESS;
    TempGroup group(members);
    int rc = group.status();
    RealComm real{};
    if (rc == FM_SUCCESS) rc = LOWER(Comm_create_group)(RealComm{parent->real}, group, tag, &real);
    CommObject* made = nullptr;
    if (rc == FM_SUCCESS) rc = comm_adopt(real, false, nullptr, &made);
    return rc != FM_SUCCESS ? rc : name_and_publish(made, parent->origin, parent->errhandler, newcomm);
}

// `peer`: null elsewhere than at the leader.
int create_inter_with_strangers(CommObject* local, int local_leader, CommObject* peer, int remote_leader,
                                int tag, Comm* newcomm) {
    RealComm real{};
    int rc = LOWER(Intercomm_create)(RealComm{local->real}, local_leader,
                                     RealComm{peer != nullptr ? peer->real : 0}, remote_leader, tag, &real);
    CommObject* made = nullptr;
    if (rc == FM_SUCCESS) rc = comm_adopt(real, true, nullptr, &made);
    return rc != FM_SUCCESS ? rc : name_and_publish(made, "MPI_Intercomm_create", local->errhandler, newcomm);
}

// ---- MPI_Intercomm_create ---------------------------------------------------------------------------------
//
// Three collectives one after the other, so that none is entered inside another (the clock could not order
// that): the leaders tell each other their groups, each tells its own group, then all of both groups create.
// Everybody knows everybody before the last one, as the clock wants it.

struct Introduction {
    uint64_t uid;
    int32_t size;
    Member leader;
    int32_t error;
    int32_t strangers;  // the peer communicator has some: the library's own way
};

int exchange_leaders(Call& call, CommObject* local, CommObject* peer, int remote_leader, int tag,
                     Introduction* theirs, Members* remote) {
    const auto other = Rank::of(peer->world_of(remote_leader));
    if (!other) return FM_ERR_RANK;
    Members pair{std::min(own_rank(), *other), std::max(own_rank(), *other)};
    const int process = physical_rank(*other).number();
    CollectiveScope scope(call, group_call(peer->uid, pair, tag));
    Introduction mine{fresh_uid(), local->size, own_rank(), 0, 0};
    RealComm real = private_world();
    tag = private_tag(peer->uid, tag);
    RealDatatype byte = to_real(FM_BYTE);
    int rc = LOWER(Sendrecv)(&mine, sizeof mine, byte, process, tag, theirs, sizeof *theirs, byte, process,
                             tag, real, nullptr);
    if (rc != FM_SUCCESS) return rc;
    remote->resize(static_cast<size_t>(theirs->size));
    rc = LOWER(Sendrecv)(local->members.data(), static_cast<Count>(local->members.size() * sizeof(Member)),
                         byte, process, tag, remote->data(),
                         static_cast<Count>(remote->size() * sizeof(Member)), byte, process, tag, real,
                         nullptr);
    // One uid for both sides: the leader of lower world rank gives it.
    if (own_rank() < *other) theirs->uid = mine.uid;
    return rc;
}

int tell_group(Call& call, CommObject* local, int leader, Introduction* theirs, Members* remote) {
    CollectiveScope scope(call, *local);
    RealComm real{local->real};
    RealDatatype byte = to_real(FM_BYTE);
    int rc = LOWER(Bcast)(theirs, sizeof *theirs, byte, leader, real);
    if (rc != FM_SUCCESS || theirs->error != 0) return rc != FM_SUCCESS ? rc : theirs->error;
    remote->resize(static_cast<size_t>(theirs->size));
    return LOWER(Bcast)(remote->data(), static_cast<Count>(remote->size() * sizeof(Member)), byte, leader,
                        real);
}

int create_inter(Call& call, CommObject* local, int local_leader, int tag, const Introduction& theirs,
                 const Members& remote, Comm* newcomm) {
    Members all(local->members);
    all.insert(all.end(), remote.begin(), remote.end());
    std::sort(all.begin(), all.end());
    CollectiveScope scope(call, group_call(kWorldUid, all, tag));
    RealComm real{};
    int rc = LOWER(Intercomm_create)(RealComm{local->real}, local_leader, private_world(),
                                     physical_rank(theirs.leader.rank()).number(),
                                     private_tag(theirs.uid, tag), &real);
    CommObject* made = nullptr;
    if (rc == FM_SUCCESS) rc = comm_adopt(real, true, nullptr, &made);
    if (rc != FM_SUCCESS) return rc;
    comm_publish(made, theirs.uid, local->errhandler);
    *newcomm = Comm{made->handle};
    return FM_SUCCESS;
}

// ---- MPI_Comm_split_type ----------------------------------------------------------------------------------

// As a split would have it: those of one group ask for the same.
Asked asked_of(const Members& members) noexcept {
    const int place = ranks::find(members, own_rank());
    if (place < 0) return {FM_UNDEFINED, 0};
    return {static_cast<int>(uid::hash_of(members) & 0x7fffffff), place};
}

constexpr const char* kResourceType = "mpi_hw_resource_type";

// MPICH's MPIX_COMM_TYPE_NEIGHBORHOOD was 2 up to 3.4 and 4 up to 4.1. Both are now types of the standard,
// and nothing tells with which mpi.h a program was built; but each of these types says in the info what it
// wants.
int split_type_meant(int split_type, const InfoObject* info) noexcept {
    if (info == nullptr) return split_type;
    if (split_type != FM_COMM_TYPE_HW_GUIDED && split_type != FM_COMM_TYPE_RESOURCE_GUIDED) return split_type;
    const auto has = [info](const char* key) { return info_find(info->pairs, key) != nullptr; };
    if (has(kResourceType) || has("mpi_pset_name")) return split_type;
    return has("nbhd_common_dirname") || has("network_topo") ? FM_COMM_TYPE_NEIGHBORHOOD : split_type;
}

// The library has said in the info by which resource it has split.
void note_resource(RealInfo hints, InfoObject* info) noexcept {
    char value[256] = "";  // Open MPI's values end there
    int found = 0;
    if (LOWER(Info_get)(hints, kResourceType, sizeof value - 1, value, &found) == FM_SUCCESS && found != 0)
        info_put(&info->pairs, kResourceType, value);
}

}  // namespace

extern "C" {

int fm_Comm_create(Comm comm, Group group, Comm* newcomm) {
    Call call("MPI_Comm_create");
    CommObject* parent = find(comm);
    if (parent == nullptr) return call.finish(FM_ERR_COMM);
    if (find(group) == nullptr) return call.finish(comm, FM_ERR_GROUP);
    return create_comm(call, parent, parent->inter, newcomm, asked_of(find(group)->members),
                       [parent, group](RealComm* real) {
                           TempGroup real_group(group);
                           if (real_group.status() != FM_SUCCESS) return real_group.status();
                           return LOWER(Comm_create)(RealComm{parent->real}, real_group, real);
                       });
}

int fm_Comm_create_group(Comm comm, Group group, int tag, Comm* newcomm) {
    Call call("MPI_Comm_create_group");
    if (logged::on()) logged::refuse("MPI_Comm_create_group");
    CommObject* parent = find(comm);
    GroupObject* object = find(group);
    if (parent == nullptr) return call.finish(FM_ERR_COMM);
    if (object == nullptr) return call.finish(comm, FM_ERR_GROUP);
    *newcomm = FM_COMM_NULL;
    if (parent->stranger)
        return call.finish(comm, create_group_with_strangers(parent, object->members, tag, newcomm));
    return call.finish(comm,
                       create_from_group(call, parent, object->members, tag, parent->errhandler, newcomm));
}

int fm_Comm_create_from_group(Group group, const char* stringtag, Info info, Errhandler errhandler,
                              Comm* newcomm) {
    Call call("MPI_Comm_create_from_group");
    if (logged::on()) logged::refuse("MPI_Comm_create_from_group");
    GroupObject* object = find(group);
    if (object == nullptr) return call.finish(FM_ERR_GROUP);
    // The string becomes a tag of MPI_COMM_WORLD's group calls.
    uint64_t hash = 0;
    for (const char* at = stringtag; *at != 0; at++) hash = uid::mix(hash ^ static_cast<unsigned char>(*at));
    ErrhandlerObject* handler = find(errhandler);
    return call.finish(create_from_group(call, &comm_world, object->members, static_cast<int>(hash & 0x3fff),
                                         handler != nullptr ? handler : &errors_are_fatal, newcomm));
}

int fm_Comm_split(Comm comm, int color, int key, Comm* newcomm) {
    Call call("MPI_Comm_split");
    CommObject* parent = find(comm);
    if (parent == nullptr) return call.finish(FM_ERR_COMM);
    return create_comm(call, parent, parent->inter, newcomm, {color, key},
                       [parent, color, key](RealComm* real) {
                           return LOWER(Comm_split)(RealComm{parent->real}, color, key, real);
                       });
}

int fm_Comm_split_type(Comm comm, int split_type, int key, Info info, Comm* newcomm) {
    Call call("MPI_Comm_split_type");
    CommObject* parent = find(comm);
    if (parent == nullptr) return call.finish(FM_ERR_COMM);
    InfoObject* wanted = find(info);
    const int meant = split_type_meant(split_type, wanted);
    const int rc = create_comm(call, parent, false, newcomm, {kLibraryChooses, key}, [=](RealComm* real) {
        TempInfo hints(info, meant == FM_COMM_TYPE_HW_UNGUIDED);
        int done = LOWER(Comm_split_type)(RealComm{parent->real}, meant, key, hints, real);
        if (done == FM_SUCCESS && meant == FM_COMM_TYPE_HW_UNGUIDED && wanted != nullptr)
            note_resource(hints, wanted);
        return done;
    });
    if (rc != FM_SUCCESS && meant > FM_COMM_TYPE_RESOURCE_GUIDED)
        bridge()->warn(
            "MPI_Comm_split_type: the MPI library below does not have this split type, which is "
            "another library's own");
    return rc;
}

int fm_Intercomm_create(Comm local_comm, int local_leader, Comm peer_comm, int remote_leader, int tag,
                        Comm* newintercomm) {
    Call call("MPI_Intercomm_create");
    if (logged::on()) logged::refuse("intercommunicators");
    *newintercomm = FM_COMM_NULL;
    CommObject* local = find(local_comm);
    if (local == nullptr) return call.finish(FM_ERR_COMM);
    if (local->inter) return call.finish(local_comm, FM_ERR_COMM);
    if (local_leader < 0 || local_leader >= local->size) return call.finish(local_comm, FM_ERR_RANK);
    Introduction theirs{};
    Members remote;
    CommObject* peer = local->rank == local_leader ? find(peer_comm) : nullptr;
    if (local->stranger)
        return call.finish(local_comm, create_inter_with_strangers(local, local_leader, peer, remote_leader,
                                                                   tag, newintercomm));
    if (local->rank == local_leader) {
        // Errors of the leader are told to its group, or the group would wait for ever.
        if (peer == nullptr)
            theirs.error = FM_ERR_COMM;
        else if (peer->stranger)
            theirs.strangers = 1;
        else
            theirs.error = exchange_leaders(call, local, peer, remote_leader, tag, &theirs, &remote);
    }
    int rc = tell_group(call, local, local_leader, &theirs, &remote);
    if (rc == FM_SUCCESS && theirs.strangers != 0)
        rc = create_inter_with_strangers(local, local_leader, peer, remote_leader, tag, newintercomm);
    else if (rc == FM_SUCCESS)
        rc = create_inter(call, local, local_leader, tag, theirs, remote, newintercomm);
    return call.finish(local_comm, rc);
}

int fm_Intercomm_merge(Comm intercomm, int high, Comm* newintracomm) {
    Call call("MPI_Intercomm_merge");
    CommObject* parent = find(intercomm);
    if (parent == nullptr) return call.finish(FM_ERR_COMM);
    if (!parent->inter) return call.finish(intercomm, FM_ERR_COMM);
    return create_comm(call, parent, false, newintracomm, {}, [parent, high](RealComm* real) {
        return LOWER(Intercomm_merge)(RealComm{parent->real}, high, real);
    });
}

}  // extern "C"
}  // namespace fermata::front
