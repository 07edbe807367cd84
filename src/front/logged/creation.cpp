// Communicators whose creation some members were told: who was not finds in the plan which one it is in.
#include <algorithm>

#include "base/kill_point.h"
#include "front/core/bridge.h"
#include "front/core/fatal.h"
#include "front/logged/state.h"
#include "front/objects/comm_make.h"
#include "front/objects/orphans.h"
#include "front/objects/real.h"

namespace fermata::front::logged {
namespace {

// The communicator of this rank among those that members were told, or null.
const replay::CommOrders* adopted(const CommObject& parent, replay::Instance instance) noexcept {
    const replay::Orders* orders = logged::orders();
    if (orders == nullptr) return nullptr;
    for (const replay::CommOrders& one : orders->comms)
        if (one.parent == uid_of(parent) && one.made_as == instance &&
            std::find(one.members.begin(), one.members.end(), own_rank()) != one.members.end())
            return &one;
    return nullptr;
}

// All who asked for the same: none of them was told, and all see this.
replay::Vec<Rank> same_colour(const Part& part, const CommObject& parent) noexcept {
    struct Place {
        int32_t key;
        int rank;
    };
    Vec<Place> places;
    const auto* all = reinterpret_cast<const Part::Asked*>(part.room.data());
    for (int i = 0; i < parent.size; i++)
        if (all[i].color == part.asked.color) places.push_back({all[i].key, i});
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
        return a.key != b.key ? a.key < b.key : a.rank < b.rank;
    });
    replay::Vec<Rank> ranks;
    for (const Place& place : places) ranks.push_back(parent.members[static_cast<size_t>(place.rank)].rank());
    return ranks;
}

}  // namespace

CommObject* with_members(const replay::Vec<Rank>& ranks) noexcept {
    Members members(ranks.begin(), ranks.end());
    auto* made = fm_new<CommObject>();
    comm_set_sides(made, static_cast<Members&&>(members), Members());
    return made;
}

void made_by_plan(RequestObject* r) noexcept {
    Part& part = *r->collective->part;
    const CommObject& parent = *r->comm;
    const replay::Instance instance = machine().request(number_of(r))->collective()->instance;
    if (part.asked.color == mpi::FM_UNDEFINED) return;
    if (const replay::CommOrders* orders = adopted(parent, instance)) {
        part.made = with_members(orders->members);
        part.made->real = orphan_taken(replay::value(orders->uid));
        if (part.made->real == 0) fatal_line("fermata: a communicator of the message log was not made again");
        return;
    }
    if (part.asked.color == kLibraryChooses)
        fatal_line("fermata: a communicator of MPI_Comm_split_type cannot be made again here");
    part.made = with_members(same_colour(part, parent));
    kill_point("creation.again");
    TempGroup group(part.made->members);
    mpi::RealComm real{};
    // Nobody else needs these ranks in the meantime: they all are at this very call.
    if (group.status() != 0 || LOWER(Comm_create_group)(to_real(mpi::FM_COMM_WORLD), group,
                                                        static_cast<int>(part.creation & 0x3fff), &real) != 0)
        fatal_line("fermata: a communicator of the message log cannot be made");
    part.made->real = static_cast<uint64_t>(real);
}

// That of the library is gone.
void forget_made(Part& part) noexcept {
    if (part.made == nullptr) return;
    fm_delete(part.made);
    part.made = nullptr;
}

replay::Made made_of(const RequestObject* r) noexcept {
    const Part& part = *r->collective->part;
    replay::Made made{};
    made.uid = static_cast<replay::Uid>(derived_uid(*r->comm, *part.made, part.creation));
    for (Member member : part.made->members) made.members.push_back(member.rank());
    return made;
}

}  // namespace fermata::front::logged
