// Communicators: ordered world ranks and all that belongs to them; the real one is made again from this at
// restart.
#pragma once

#include "front/objects/attribute.h"
#include "front/objects/errhandler.h"
#include "front/objects/group.h"
#include "front/objects/info.h"

namespace fermata::clock {
struct Comm;
}

namespace fermata::front {

struct RequestObject;  // of the room requests

// Stands for the clock of communicators whose collectives have to be Calls from the start. A checkpoint is
// always on its way here; what else calls write in it means nothing.
extern clock::Comm no_direct_clock;

struct Topology {
    int32_t kind = 0;                  // standard ABI MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH; 0 is none
    Vec<int> dims, periods;            // cart
    Vec<int> index, edges;             // graph
    Vec<int> sources, source_weights;  // dist_graph, of this rank
    Vec<int> destinations, destination_weights;  // dist_graph, of this rank
    bool weighted = false;
};

struct CommObject : Object {
    constexpr CommObject() : Object(Kind::comm) {}
    uint64_t uid = 0;              // the same at all members, never used twice in a job; order of rebuild
    clock::Comm* clock = nullptr;  // the collective clock's state
    clock::Comm* direct_clock = &no_direct_clock;  // the same, for the direct entries
    int32_t rank = 0;                              // this process in the (local) group
    int32_t size = 0;                              // of the (local) group
    int32_t remote_size = 0;                       // of the remote group, 0 for intra-communicators
    bool inter = false;
    bool freed = false;      // the application freed it; lives on for requests that are still open
    bool stranger = false;   // has members outside this job's world: see connected.h
    bool connected = false;  // ... and is counted as such: no checkpoint begins
    // inter-communicators: true on the side whose members come first in the order of the union (see
    // clock_members)
    bool low = false;
    Members members;  // in rank order (local group)
    Members remote;   // remote group in rank order
    // Whom messages to a peer are counted for: the group that p2p ranks refer to. Nobody where strangers are.
    const Member* counted = nullptr;
    uint32_t counted_size = 0;
    const char* origin = nullptr;  // the call that led to strangers
    uint64_t creations = 0;  // collective creations on this communicator so far: part of the children's uids
    Topology* topology = nullptr;
    ErrhandlerObject* errhandler = nullptr;  // holds a reference
    Text name;
    InfoPairs info;  // hints given (what MPI_Comm_get_info shows)
    Attributes attributes;
    // All live communicators (freed ones with open requests too), any order.
    CommObject* next = nullptr;
    CommObject* previous = nullptr;
    RequestObject* farewell = nullptr;   // the barrier that MPI_Comm_free began
    CommObject* next_leaving = nullptr;  // freed, farewell not complete; then: dead, to be destroyed
    bool dead = false;                   // no reference left

    // The group that p2p ranks refer to: remote for inter-communicators.
    const Members& peers() const { return inter ? remote : members; }
    // The world rank of a peer; -1 if there is none of that rank, or the communicator's messages are not
    // counted.
    int32_t world_of(int peer) const {
        return static_cast<uint32_t>(peer) < counted_size ? counted[peer].number() : -1;
    }
};

__attribute__((always_inline)) inline CommObject* find_comm(uint32_t handle) noexcept {
    return static_cast<CommObject*>(find_object(handle, Kind::comm));
}
// Sets `counted`, once the members are known.
void comm_count_peers(CommObject* comm) noexcept;
// A pending request keeps a communicator that the application frees.
inline void comm_ref(CommObject* comm) noexcept { ref(comm); }
void comm_unref(CommObject* comm) noexcept;
// Those without a reference left, chained by next_leaving: to be destroyed by the caller.
CommObject* take_dead_comms() noexcept;
// Takes it out of the list of live ones.
void comm_unlink(CommObject* comm) noexcept;

// Predefined ones (storage that no static destructor touches: programs call MPI from exit handlers).
extern CommObject& comm_world;
extern CommObject& comm_self;
// Head of the list of all live communicators except WORLD and SELF.
CommObject* first_comm() noexcept;

inline constexpr uint64_t kWorldUid = 1;
// MPI_COMM_SELF is another communicator in every process.
constexpr uint64_t self_uid(Rank rank) { return uint64_t{1} << 61 | rank.number(); }

// Both sides of a communicator as one list, the same at all members: what the clock counts.
Members clock_members(const CommObject& comm) noexcept;

}  // namespace fermata::front
