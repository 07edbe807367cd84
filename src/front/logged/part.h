// A member's part in one collective call: what it contributes, where its result goes, and how far it is. From
// it the call is issued again, in whichever form the machine of the log says.
#pragma once

#include "front/logged/bytes.h"
#include "front/requests/logged.h"
#include "replay/machine.h"

namespace fermata::front::logged {

// One buffer argument: one block, or one for each member.
struct Side {
    void* base = nullptr;
    TypeObject* type = nullptr;
    int64_t count = 0;
    bool for_each_member = false;
    Vec<int64_t> counts;
    Vec<int64_t> places;     // in extents of the type; with types of their own in bytes
    Vec<TypeObject*> types;  // of MPI_Alltoallw

    Block whole() const { return {base, count, type}; }
    Block of(int member) const;
};

// A color that no program can ask for: the library says who is together.
inline constexpr int kLibraryChooses = -2;

struct Part {
    replay::Arguments arguments{};
    int root = -1;  // rank in the communicator
    Side send, receive;
    OpObject* op = nullptr;
    bool in_place = false;
    bool exclusive = false;  // MPI_Exscan
    // A creation: which communicator this member will be in, and where in it; MPI_UNDEFINED: in none.
    struct Asked {
        int32_t color, key;
    } asked{};
    uint64_t creation = 0;
    replay::Instance instance{};
    CommObject* made = nullptr;  // the library has made it, nobody was told yet

    // The form in which it is (to be) issued now.
    replay::Way way = replay::Way::native;
    Rank from{0};
    bool outside = true;  // not issued yet in that form
    bool planned = false;
    // Buffers of a form on bytes, for as long as the library works on it.
    replay::Bytes given, room;
    Vec<mpi::Count> counts, room_counts;
    Vec<mpi::Aint> places, room_places;
};

// For the generated entries: how one is filled.
Part* new_part(replay::Kind kind, bool blocking) noexcept;
void set_root(Part* part, const CommObject* comm, int root) noexcept;
void set_op(Part* part, mpi::Op op) noexcept;
// One block; `type` may be null where the argument means nothing.
void set_side(Side* side, const void* base, int64_t count, mpi::Datatype type) noexcept;
// One for each member; `counts` null where they mean nothing. `places` null: one behind the other.
template <typename Number, typename Place>
void set_sides(Side* side, const void* base, const Number* counts, const Place* places, mpi::Datatype type,
               int members) noexcept {
    set_side(side, base, 0, type);
    side->for_each_member = true;
    if (counts == nullptr) return;
    int64_t behind = 0;
    for (int i = 0; i < members; i++) {
        side->counts.push_back(static_cast<int64_t>(counts[i]));
        side->places.push_back(places != nullptr ? static_cast<int64_t>(places[i]) : behind);
        behind += static_cast<int64_t>(counts[i]);
    }
}
// The same number for each.
void set_equal_sides(Side* side, const void* base, int64_t count, mpi::Datatype type, int members) noexcept;
void set_types(Side* side, const mpi::Datatype* types, int members) noexcept;
// Once all is set.
void finish_part(Part* part) noexcept;

Part* copy_of(const Part& part) noexcept;

// Appends as bytes what the member contributes, and what its result is.
void contribution(const Part& part, const CommObject& comm, replay::Bytes* out) noexcept;
void result(const Part& part, const CommObject& comm, replay::Bytes* out) noexcept;
// Bytes of the result, and the result put where it goes.
int64_t result_bytes(const Part& part, const CommObject& comm) noexcept;
void put_result(const Part& part, const CommObject& comm, const uint8_t* data, int64_t size) noexcept;
// Puts back the input that the call overwrites.
void put_input(const Part& part, const replay::Bytes& input) noexcept;
// Appends the blocks of all members.
int64_t bytes_of_all(const Side& side) noexcept;

}  // namespace fermata::front::logged
