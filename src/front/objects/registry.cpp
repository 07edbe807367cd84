#include "front/objects/registry.h"

#include "front/core/fatal.h"

namespace fermata::front {

constinit Object no_object{Kind::none};
constinit Registry registry;

namespace {

void grow(HandleTable& table) {
    uint32_t capacity = table.capacity == 0 ? 256 : table.capacity * 2;
    if (capacity > mpi::kIndexLimit) fatal_line("fermata: more than 64 million live handles of one kind");
    auto** slots = static_cast<Object**>(fm_calloc(capacity * sizeof(Object*)));
    auto* free_list = static_cast<uint32_t*>(fm_alloc(capacity * sizeof(uint32_t)));
    if (table.capacity != 0) {
        __builtin_memcpy(slots, table.slots, table.capacity * sizeof(Object*));
        __builtin_memcpy(free_list, table.free_list, table.free_top * sizeof(uint32_t));
    } else {
        table.top = kFirstIndex;
    }
    fm_free(table.free_list);
    table.free_list = free_list;
    // The old array stays: a reader may be in it.
    __atomic_store_n(&table.slots, slots, __ATOMIC_RELEASE);
    __atomic_store_n(&table.capacity, capacity, __ATOMIC_RELEASE);
}

}  // namespace

uint32_t give_handle(Object* object) noexcept {
    HandleTable& table = registry.tables[static_cast<uint32_t>(object->kind)];
    SpinGuard guard(table.lock);
    uint32_t index;
    if (table.free_top != 0) {
        index = table.free_list[--table.free_top];
    } else {
        if (table.top == table.capacity) grow(table);
        index = table.top++;
    }
    object->handle = mpi::dynamic_word(object->kind, index);
    __atomic_store_n(&table.slots[index], object, __ATOMIC_RELEASE);
    table.used++;
    return object->handle;
}

void take_handle(Object* object) noexcept {
    if (!is_dynamic(object->handle)) return;
    HandleTable& table = registry.tables[static_cast<uint32_t>(object->kind)];
    SpinGuard guard(table.lock);
    uint32_t index = index_of(object->handle);
    if (table.slots[index] != object) return;
    __atomic_store_n(&table.slots[index], nullptr, __ATOMIC_RELEASE);
    table.free_list[table.free_top++] = index;
    table.used--;
    object->handle = 0;
}

void give_predefined(Object* object, uint32_t handle) noexcept {
    if (handle == 0 || handle >= kPredefinedHandles)
        fatal_line("fermata: predefined handle out of range: a bug");
    object->handle = handle;
    object->predefined = true;
    registry.predefined[handle] = object;
}

uint32_t live_handles(Kind kind) noexcept {
    HandleTable& table = registry.tables[static_cast<uint32_t>(kind)];
    SpinGuard guard(table.lock);
    return table.used;
}

}  // namespace fermata::front
