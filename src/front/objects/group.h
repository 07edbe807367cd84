// Groups are ordered lists of processes and know nothing of the real library.
#pragma once

#include "base/rank.h"
#include "front/core/front.h"
#include "front/objects/registry.h"

namespace fermata::front {

// A process as this one knows it: a rank of the job, or a stranger (connected.h), which has a number that no
// rank has. Four bytes, which ranks of one job send each other as they are.
class Member {
  public:
    constexpr Member() = default;  // nobody
    constexpr Member(Rank rank) : number_(static_cast<int32_t>(rank.number())) {}
    // The n-th that this process has met. A number is never used again: two strangers are the same process if
    // and only if they are equal.
    static constexpr Member stranger(int32_t n) {
        Member made;
        made.number_ = kFirstStranger - n;
        return made;
    }
    constexpr bool is_stranger() const { return number_ < 0; }
    constexpr int32_t which_stranger() const { return kFirstStranger - number_; }
    constexpr Rank rank() const {
        always(number_ >= 0, "a process outside of the job, taken for a rank");
        return Rank(static_cast<uint32_t>(number_));
    }
    constexpr int32_t number() const { return number_; }
    constexpr auto operator<=>(const Member&) const = default;

  private:
    static constexpr int32_t kFirstStranger = -(1 << 20);
    int32_t number_ = INT32_MIN;
};
static_assert(sizeof(Member) == 4);

inline Rank own_rank() noexcept { return Rank(static_cast<uint32_t>(front.world_rank)); }

using Members = Vec<Member>;

struct GroupObject : Object {
    GroupObject() : Object(Kind::group) {}
    Members members;  // in group order
};

inline GroupObject* find_group(uint32_t handle) noexcept {
    return static_cast<GroupObject*>(find_object(handle, Kind::group));
}
// A handle for this list; the predefined empty group when it is empty.
uint32_t make_group(Members&& members) noexcept;

// Group algebra (pure). Positions are -1 when absent.
namespace ranks {

// Answers "at which position is process w" for one list; small lists are searched, large ones indexed.
class Position {
  public:
    explicit Position(const Members& list) noexcept;
    int of(Member member) const noexcept;

  private:
    const Members& list_;
    struct Entry {
        Member member;
        int32_t position;
    };
    Vec<Entry> sorted_;
};

int find(const Members& list, Member member) noexcept;
enum class Relation { same, similar, different };
Relation compare(const Members& a, const Members& b) noexcept;
Members united(const Members& a, const Members& b) noexcept;
Members intersection(const Members& a, const Members& b) noexcept;
Members difference(const Members& a, const Members& b) noexcept;
// False: a rank is out of range or named twice.
bool include(const Members& list, int n, const int* wanted, Members* result) noexcept;
bool exclude(const Members& list, int n, const int* unwanted, Members* result) noexcept;
// Ranges (first, last, stride) written out as positions; false when one is malformed.
bool expand(int n, const int (*ranges)[3], Vec<int>* positions) noexcept;

}  // namespace ranks
}  // namespace fermata::front
