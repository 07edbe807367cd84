// Virtual handles: from the 32-bit value the application holds to the object.
//
// Predefined handles are the standard ABI's small integers and index one flat array; dynamic ones carry their
// kind and an index into a flat table per kind. Looking up takes no lock: a table that grows leaves its old
// array behind (arrays double, so what is left behind never exceeds what is in use). Indices are reused, so
// create/free cycles do not grow anything.
#pragma once

#include "front/objects/object.h"

namespace fermata::front {

inline constexpr uint32_t kPredefinedHandles = 1024;  // the standard ABI's are below 768
using mpi::index_of;
using mpi::is_dynamic;
using mpi::kFirstIndex;

struct HandleTable {
    Object** slots;     // [capacity]; null = free (or reserved below kFirstIndex)
    uint32_t capacity;  // 0 before the first use
    uint32_t used;      // live handles
    uint32_t top;       // indices at and above were never given out
    uint32_t free_top;  // entries in free_list
    uint32_t* free_list;
    SpinLock lock;  // writers only
};

extern Object no_object;  // of no kind: what has no predefined handle is this
struct Registry {
    Object* predefined[kPredefinedHandles];
    HandleTable tables[kKinds]{};
    constexpr Registry() {
        for (Object*& object : predefined) object = &no_object;
    }
};
extern Registry registry;

// Gives the object a handle (and stores it there).
uint32_t give_handle(Object* object) noexcept;
// Forgets the handle; the object itself is untouched except for `handle`.
void take_handle(Object* object) noexcept;
// A predefined handle of a kind (the object must live for ever).
void give_predefined(Object* object, uint32_t handle) noexcept;

// The object of a dynamic handle, or null for all others. The handle is a word, or one that the sign has made
// wider. `table` is its kind's.
template <typename Word>
__attribute__((always_inline)) inline Object* find_dynamic(const HandleTable& table, Word handle,
                                                           Kind kind) noexcept {
    // Another kind's: beyond every capacity.
    const auto index = static_cast<std::make_unsigned_t<Word>>(
        handle ^ static_cast<Word>(static_cast<int32_t>(mpi::dynamic_word(kind, 0))));
    // Capacity before slots: both only grow, so an old capacity with a new array is safe and the reverse is
    // not.
    if (__builtin_expect(index >= __atomic_load_n(&table.capacity, __ATOMIC_ACQUIRE), 0)) return nullptr;
    return __atomic_load_n(&table.slots, __ATOMIC_RELAXED)[index];
}
inline const HandleTable& table_of(Kind kind) noexcept {
    return registry.tables[static_cast<uint32_t>(kind) & (kKinds - 1)];
}
template <typename Word>
__attribute__((always_inline)) inline Object* find_dynamic(Word handle, Kind kind) noexcept {
    return find_dynamic(table_of(kind), handle, kind);
}
// The object, or null for null handles, freed ones and garbage.
__attribute__((always_inline)) inline Object* find_object(uint32_t handle, Kind kind) noexcept {
    if (handle >= kPredefinedHandles) return find_dynamic(handle, kind);
    Object* object = registry.predefined[handle];
    return __builtin_expect(object->kind == kind, 1) ? object : nullptr;
}

// Live handles of a kind (tests, leak hunting).
uint32_t live_handles(Kind kind) noexcept;

// Calls visit(Object*) for every live dynamic handle of a kind, in index order.
template <typename F>
void for_each_object(Kind kind, F&& visit) {
    HandleTable& table = registry.tables[static_cast<uint32_t>(kind)];
    for (uint32_t i = kFirstIndex; i < table.top; i++)
        if (table.slots[i] != nullptr) visit(table.slots[i]);
}

}  // namespace fermata::front
