// Collective creation of communicators, and looking after those that go.
#pragma once

#include "front/logged/log.h"
#include "front/objects/comm_make.h"
#include "front/requests/collective.h"

namespace fermata::front {

// Destroys what has no reference left, and looks after communicators on their way out.
void comms_tidy(Call& call) noexcept;
// The same; true while some member has not freed one that this process freed.
bool comms_leaving(Call& call) noexcept;

// Which communicator this process will be in, and where in it, as MPI_Comm_split has it: for the message log.
struct Asked {
    int color = 0, key = 0;
};
using logged::kLibraryChooses;

// The same in a job with a message log. The communicator that `make` has made is in the part from then on:
// the thread may be brought back out of the library.
template <typename Make, typename Finish>
int create_logged(Call& call, CommObject* parent, bool inter, mpi::Comm* newcomm, Asked asked,
                  const Make& make, const Finish& finish) {
    if (inter || parent->inter) logged::refuse("intercommunicators");
    const logged::Native native{&make, [](const void* context) {
                                    mpi::RealComm real{};
                                    const int rc = (*static_cast<const Make*>(context))(&real);
                                    if (rc != mpi::FM_SUCCESS || static_cast<uint64_t>(real) == 0) return rc;
                                    return comm_adopt(real, false, nullptr, &logged::creation_now()->made);
                                }};
    CommObject* made = nullptr;
    const uint64_t creation = parent->creations + 1;
    const int rc = logged::create(call, parent, {asked.color, asked.key}, native, &made);
    if (rc == mpi::FM_SUCCESS && made != nullptr) {
        finish(made);
        comm_publish(made, derived_uid(*parent, *made, creation), parent->errhandler);
        *newcomm = mpi::Comm{made->handle};
    }
    return call.finish(mpi::Comm{parent->handle}, rc);
}

// One collective creation on `parent`: make(&real) calls the library, finish(made) completes the description
// before others can see it. *newcomm is null for processes that are not in it.
template <typename Make, typename Finish>
int create_comm(Call& call, CommObject* parent, bool inter, mpi::Comm* newcomm, Asked asked, Make&& make,
                Finish&& finish) {
    *newcomm = mpi::FM_COMM_NULL;
    comms_tidy(call);
    if (logged::on()) return create_logged(call, parent, inter, newcomm, asked, make, finish);
    CollectiveScope scope(call, *parent);
    uint64_t creation = ++parent->creations;
    mpi::RealComm real{};
    int rc = make(&real);
    CommObject* made = nullptr;
    if (rc == mpi::FM_SUCCESS && static_cast<uint64_t>(real) != 0)
        rc = comm_adopt(real, inter, nullptr, &made);
    uint64_t uid = 0;
    if (rc == mpi::FM_SUCCESS && made != nullptr) rc = child_uid(*parent, made, creation, &uid);
    if (rc == mpi::FM_SUCCESS && made != nullptr) {
        finish(made);
        comm_publish(made, uid, parent->errhandler);
        *newcomm = mpi::Comm{made->handle};
    }
    scope.end();
    return call.finish(mpi::Comm{parent->handle}, rc);
}
template <typename Make>
int create_comm(Call& call, CommObject* parent, bool inter, mpi::Comm* newcomm, Asked asked, Make&& make) {
    return create_comm(call, parent, inter, newcomm, asked, static_cast<Make&&>(make), [](CommObject*) {});
}

}  // namespace fermata::front
