// The steps every creation of a communicator is made of; for the files of this room.
#pragma once

#include "fermata_types.h"
#include "front/core/collective.h"
#include "front/objects/comm.h"
#include "front/objects/connected.h"

namespace fermata::front {

// A number no other process ever makes.
uint64_t fresh_uid() noexcept;
// An object for a fresh real communicator. Members are asked from the library unless they are known to be
// those of another communicator.
int comm_adopt(mpi::RealComm real, bool inter, const CommObject* same_members, CommObject** made) noexcept;
// Fills in everything that follows from who is in it.
void comm_set_sides(CommObject* comm, Ranks&& members, Ranks&& remote) noexcept;
// Gives it uid, handle and clock; from here on it can be used. Still inside the scope of the creation.
void comm_publish(CommObject* comm, uint64_t uid, ErrhandlerObject* errhandler) noexcept;
// Destroys what has no reference left, and looks after communicators on their way out.
void comms_tidy(Call& call) noexcept;
// The same; true while some member has not freed one that this process freed.
bool comms_leaving(Call& call) noexcept;
uint64_t derived_uid(CommObject& parent, const CommObject& child, uint64_t creation) noexcept;
// The uid of a child made by a creation on `parent`. Collective over the child if the parent has strangers.
int child_uid(CommObject& parent, CommObject* child, uint64_t creation, uint64_t* uid) noexcept;

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
