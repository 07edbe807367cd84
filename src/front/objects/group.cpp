#include "front/objects/group.h"

#include <algorithm>

namespace fermata::front {
namespace ranks {
namespace {
constexpr size_t kSearched = 16;  // below this a linear search beats building an index
}

Position::Position(const Members& list) noexcept : list_(list) {
    if (list.size() <= kSearched) return;
    sorted_.reserve(list.size());
    for (size_t i = 0; i < list.size(); i++) sorted_.push_back({list[i], static_cast<int32_t>(i)});
    auto before = [](const Entry& a, const Entry& b) { return a.member < b.member; };
    if (!std::is_sorted(sorted_.begin(), sorted_.end(), before))
        std::sort(sorted_.begin(), sorted_.end(), before);
}

int Position::of(Member member) const noexcept {
    if (sorted_.empty()) return find(list_, member);
    auto at = std::lower_bound(sorted_.begin(), sorted_.end(), member,
                               [](const Entry& entry, Member other) { return entry.member < other; });
    return at != sorted_.end() && at->member == member ? at->position : -1;
}

int find(const Members& list, Member member) noexcept {
    for (size_t i = 0; i < list.size(); i++)
        if (list[i] == member) return static_cast<int>(i);
    return -1;
}

Relation compare(const Members& a, const Members& b) noexcept {
    if (a.size() != b.size()) return Relation::different;
    if (a == b) return Relation::same;
    Position in_b(b);
    for (Member member : a)
        if (in_b.of(member) < 0) return Relation::different;
    return Relation::similar;
}

// MPI-4.0 7.3.2: all of the first, then those of the second that are not in the first.
Members united(const Members& a, const Members& b) noexcept {
    Members result(a);
    Position in_a(a);
    for (Member member : b)
        if (in_a.of(member) < 0) result.push_back(member);
    return result;
}

Members intersection(const Members& a, const Members& b) noexcept {
    Members result;
    Position in_b(b);
    for (Member member : a)
        if (in_b.of(member) >= 0) result.push_back(member);
    return result;
}

Members difference(const Members& a, const Members& b) noexcept {
    Members result;
    Position in_b(b);
    for (Member member : a)
        if (in_b.of(member) < 0) result.push_back(member);
    return result;
}

bool include(const Members& list, int n, const int* wanted, Members* result) noexcept {
    Vec<uint8_t> seen(list.size(), 0);
    result->clear();
    if (n > 0) result->reserve(static_cast<size_t>(n));
    for (int i = 0; i < n; i++) {
        int position = wanted[i];
        if (position < 0 || static_cast<size_t>(position) >= list.size() ||
            seen[static_cast<size_t>(position)])
            return false;
        seen[static_cast<size_t>(position)] = 1;
        result->push_back(list[static_cast<size_t>(position)]);
    }
    return true;
}

bool exclude(const Members& list, int n, const int* unwanted, Members* result) noexcept {
    Vec<uint8_t> out(list.size(), 0);
    for (int i = 0; i < n; i++) {
        int position = unwanted[i];
        if (position < 0 || static_cast<size_t>(position) >= list.size() ||
            out[static_cast<size_t>(position)])
            return false;
        out[static_cast<size_t>(position)] = 1;
    }
    result->clear();
    for (size_t i = 0; i < list.size(); i++)
        if (!out[i]) result->push_back(list[i]);
    return true;
}

bool expand(int n, const int (*ranges)[3], Vec<int>* positions) noexcept {
    positions->clear();
    for (int i = 0; i < n; i++) {
        int64_t first = ranges[i][0], last = ranges[i][1], stride = ranges[i][2];
        if (stride == 0 || (stride > 0 && first > last) || (stride < 0 && first < last)) return false;
        for (int64_t at = first; stride > 0 ? at <= last : at >= last; at += stride)
            positions->push_back(static_cast<int>(at));
    }
    return true;
}

}  // namespace ranks

uint32_t make_group(Members&& members) noexcept {
    if (members.empty()) return static_cast<uint32_t>(mpi::FM_GROUP_EMPTY);
    auto* group = fm_new<GroupObject>();
    group->members = static_cast<Members&&>(members);
    return give_handle(group);
}

}  // namespace fermata::front
