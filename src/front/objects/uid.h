// Uids of communicators: agreed on by all members without a message where the parent's history allows it.
//
// Collective creations on one communicator happen in the same order at all members, so (uid of the parent,
// how many creations, first member) names the child everywhere; the first member tells the parts of a split
// apart. Where the members have no common parent (create_group, intercomm_create), one process makes a fresh
// number and tells it.
#pragma once

#include <cstdint>

#include "front/objects/group.h"

namespace fermata::front::uid {

// The clock keeps the top bit for itself; bit 62 marks fresh numbers, bit 61 those of MPI_COMM_SELF.
inline constexpr uint64_t kFresh = uint64_t{1} << 62;
inline constexpr uint64_t kHashed = (uint64_t{1} << 61) - 1;

// splitmix64: a bijection with good avalanche (public domain constants by Vigna).
constexpr uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
constexpr uint64_t derived(uint64_t parent, uint64_t creation, Member first_member) {
    uint64_t value =
        mix(mix(mix(parent) ^ creation) ^ static_cast<uint32_t>(first_member.number())) & kHashed;
    return value < 16 ? value + 16 : value;  // small ones are predefined
}
constexpr uint64_t fresh(Rank rank, uint32_t counter) {
    return kFresh | uint64_t{rank.number()} << 32 | counter;
}
inline uint64_t hash_of(const Members& members) {
    uint64_t hash = members.size();
    for (Member member : members) hash = mix(hash ^ static_cast<uint32_t>(member.number()));
    return hash;
}

}  // namespace fermata::front::uid
