// MPI_Comm_dup and MPI_Comm_idup.
#include "front/calls/comm_create.h"
#include "front/objects/api.h"
#include "front/requests/nonblocking.h"

namespace fermata::front {
namespace {

int duplicate(Call& call, Comm comm, const InfoPairs* hints, Comm* newcomm) {
    CommObject* parent = find(comm);
    if (parent == nullptr) return call.finish(FM_ERR_COMM);
    comms_tidy(call);
    CommObject* made = nullptr;
    if (logged::on()) {
        int rc = create_logged(
            call, parent, false, newcomm, {0, parent->rank},
            [parent](RealComm* real) { return LOWER(Comm_dup)(RealComm{parent->real}, real); },
            [&](CommObject* fresh) {
                if (parent->topology != nullptr) fresh->topology = fm_new<Topology>(*parent->topology);
                if (hints != nullptr) fresh->info = *hints;
                made = fresh;
            });
        if (rc != FM_SUCCESS) return rc;
    } else {
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
    if (logged::on()) logged::refuse("MPI_Comm_idup");
    CommObject* parent = find(comm);
    if (parent == nullptr) return call.finish(FM_ERR_COMM);
    auto* made = fm_new<CommObject>();
    made->inter = parent->inter;
    comm_set_sides(made, Members(parent->members), Members(parent->remote));
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

}  // extern "C"
}  // namespace fermata::front
