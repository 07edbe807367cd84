// Groups are ordered lists of world ranks and know nothing of the real library.
#pragma once

#include "front/objects/registry.h"

namespace fermata::front {

using Ranks = Vec<int32_t>;

struct GroupObject : Object {
    GroupObject() : Object(Kind::group) {}
    Ranks members;  // world ranks in group order
};

inline GroupObject* find_group(uint32_t handle) noexcept {
    return static_cast<GroupObject*>(find_object(handle, Kind::group));
}
// A handle for this list; the predefined empty group when it is empty.
uint32_t make_group(Ranks&& members) noexcept;

// Group algebra (pure). Positions are -1 when absent.
namespace ranks {

// Answers "at which position is world rank w" for one list; small lists are searched, large ones indexed.
class Position {
  public:
    explicit Position(const Ranks& list) noexcept;
    int of(int32_t world) const noexcept;

  private:
    const Ranks& list_;
    struct Entry {
        int32_t world, position;
    };
    Vec<Entry> sorted_;
};

int find(const Ranks& list, int32_t world) noexcept;
enum class Relation { same, similar, different };
Relation compare(const Ranks& a, const Ranks& b) noexcept;
Ranks united(const Ranks& a, const Ranks& b) noexcept;
Ranks intersection(const Ranks& a, const Ranks& b) noexcept;
Ranks difference(const Ranks& a, const Ranks& b) noexcept;
// False: a rank is out of range or named twice.
bool include(const Ranks& list, int n, const int* wanted, Ranks* result) noexcept;
bool exclude(const Ranks& list, int n, const int* unwanted, Ranks* result) noexcept;
// Ranges (first, last, stride) written out as positions; false when one is malformed.
bool expand(int n, const int (*ranges)[3], Vec<int>* positions) noexcept;

}  // namespace ranks
}  // namespace fermata::front
