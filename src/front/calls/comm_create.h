// Collective creation of communicators, and looking after those that go.
#pragma once

#include "front/objects/comm_make.h"
#include "front/requests/collective.h"

namespace fermata::front {

// Destroys what has no reference left, and looks after communicators on their way out.
void comms_tidy(Call& call) noexcept;
// The same; true while some member has not freed one that this process freed.
bool comms_leaving(Call& call) noexcept;

// One collective creation on `parent`: make(&real) calls the library, finish(made) completes the description
// before others can see it. *newcomm is null for processes that are not in it.
template <typename Make, typename Finish>
int create_comm(Call& call, CommObject* parent, bool inter, mpi::Comm* newcomm, Make&& make,
                Finish&& finish) {
    *newcomm = mpi::FM_COMM_NULL;
    comms_tidy(call);
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
int create_comm(Call& call, CommObject* parent, bool inter, mpi::Comm* newcomm, Make&& make) {
    return create_comm(call, parent, inter, newcomm, static_cast<Make&&>(make), [](CommObject*) {});
}

}  // namespace fermata::front
