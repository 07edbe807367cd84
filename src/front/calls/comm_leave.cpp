// MPI_Comm_free and MPI_Comm_disconnect: how communicators go.
#include "front/calls/comm_create.h"
#include "front/objects/api.h"
#include "front/objects/clock.h"
#include "front/objects/connected.h"
#include "front/requests/engine.h"
#include "front/requests/nonblocking.h"

namespace fermata::front {
namespace {

SpinLock leaving_lock;
CommObject* leaving;  // freed by the application, others may not have freed it yet

// The last reference is gone.
void destroy(CommObject* comm) {
    comm_unlink(comm);
    forget_messages(*comm);
    if (comm->clock != nullptr) clock_unregister(*comm);
    take_handle(comm);
    RealComm real{comm->real};
    if (comm->real != 0) LOWER(Comm_free)(&real);
    errhandler_unref(comm->errhandler);
    fm_delete(comm->topology);
    fm_delete(comm);
}

}  // namespace

void comms_tidy(Call& call) noexcept {
    if (leaving != nullptr) {
        SpinGuard guard(leaving_lock);
        for (CommObject** link = &leaving; *link != nullptr;) {
            CommObject* comm = *link;
            auto* farewell = comm->farewell;
            bool complete = farewell->state == State::complete;
            if (!complete) {
                LockIfCareful slow(call.record());
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
    for (CommObject* comm = take_dead_comms(); comm != nullptr;) {
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

namespace {

int check_leaving(Call& call, Comm handle) {
    CommObject* comm = find(handle);
    if (comm == nullptr || comm->predefined || comm->freed) return call.finish(FM_ERR_COMM);
    if (int rc = attributes_delete_all({Owner::comm, comm->handle}, &comm->attributes))
        return call.finish(handle, rc);
    return FM_SUCCESS;
}

// No clock has to be agreed on: strangers would not understand a barrier of ours, and a message log knows who
// has freed what.
int leave_alone(Call& call, Comm* handle) {
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
    if (comm->stranger) return leave_alone(call, handle);
    if (logged::on()) {
        logged::leave(call, comm);
        return leave_alone(call, handle);
    }
    CollectiveRecord* record = new_collective(
        [](CollectiveRecord*, RealComm real, RealRequest* request) { return LOWER(Ibarrier)(real, request); },
        "MPI_Comm_free");
    mpi::Request request{};
    if (int rc = begin_collective(call.record(), comm, record, &request)) return call.finish(*handle, rc);
    RequestObject* farewell = find_request(request);
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
        return leave_alone(call, handle);
    }
    if (logged::on()) {
        logged::leave(call, comm);
    } else {
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

}  // namespace

extern "C" {

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
