// Real infos and groups for the length of one call.
#include "front/objects/api.h"
#include "front/objects/comm.h"
#include "front/objects/connected.h"
#include "front/objects/info.h"

namespace fermata::front {

RealInfoFor::RealInfoFor(uint32_t handle, bool to_be_filled) noexcept {
    if (InfoObject* info = find_info(handle)) fill(info->pairs, to_be_filled);
}
RealInfoFor::RealInfoFor(const InfoPairs& pairs) noexcept { fill(pairs, false); }

void RealInfoFor::fill(const InfoPairs& pairs, bool to_be_filled) noexcept {
    // No hints and the null info mean the same to every function that only reads them, and the null one costs
    // nothing.
    if (pairs.empty() && !to_be_filled) return;
    RealInfo real{};
    if (LOWER(Info_create)(&real) != FM_SUCCESS) return;
    word_ = static_cast<uint64_t>(real);
    // A hint the library refuses (length limits differ: Open MPI 4.1 takes keys of 35 characters) is dropped,
    // as libraries may ignore any hint.
    for (const InfoPair& pair : pairs) LOWER(Info_set)(real, pair.key.c_str(), pair.value.c_str());
}

RealInfoFor::~RealInfoFor() {
    if (word_ == 0) return;
    RealInfo real{word_};
    LOWER(Info_free)(&real);
}

RealGroupFor::RealGroupFor(uint32_t handle) noexcept {
    GroupObject* group = find_group(handle);
    if (group == nullptr)
        status_ = FM_ERR_GROUP;
    else
        fill(group->members);
}

RealGroupFor::RealGroupFor(const Members& members) noexcept { fill(members); }

void RealGroupFor::fill(const Members& members) noexcept {
    Vec<int> numbers;
    if (!library_numbers(members, &numbers)) {
        status_ = FM_ERR_GROUP;
        return;
    }
    RealGroup real{};
    status_ = LOWER(GroupOfWorldRanks)(static_cast<int>(numbers.size()), numbers.data(), &real);
    word_ = static_cast<uint64_t>(real);
}

RealGroupFor::~RealGroupFor() {
    if (word_ == 0) return;
    RealGroup real{word_};
    LOWER(Group_free)(&real);
}

}  // namespace fermata::front
