// Windows: memory, displacement unit, hints and flavour; made again at restart when no access is open.
#pragma once

#include "front/objects/comm.h"

namespace fermata::front {

struct WinAttached {
    void* base;
    int64_t size;
};

struct WinLock {
    int32_t target;
    int32_t type;
    int32_t assert;
};

// Memory of MPI_Win_allocate_shared: one mapping per process of the same pages, members one after the other.
struct SharedSegment {
    char* start = nullptr;
    int64_t length = 0;    // bytes mapped
    Vec<int64_t> sizes;    // by rank
    Vec<int64_t> offsets;  // by rank, from start
    Vec<int32_t> units;    // displacement units by rank
};

struct WinObject : Object {
    WinObject() : Object(Kind::win) {}
    CommObject* comm = nullptr;  // private: the application may free its own before the window
    bool alone = false;          // no real one: win_alone.h
    int32_t flavor = 0;          // standard ABI MPI_WIN_FLAVOR_*
    int32_t model = 0;
    void* base = nullptr;
    int64_t size = 0;
    int32_t disp_unit = 1;
    void* owned = nullptr;  // memory of MPI_Win_allocate, ours to unmap
    uint64_t owned_size = 0;
    SharedSegment* shared = nullptr;
    InfoPairs info;
    Text name;
    ErrhandlerObject* errhandler = nullptr;
    Attributes attributes;
    Vec<WinAttached> attached;  // dynamic windows
    // Synchronisation state.
    bool fenced = false;      // the last fence allowed an epoch after it; the same at all members
    bool fence_open = false;  // ... and at the last save nobody had opened another kind since
    bool locked_all = false;  // MPI_Win_lock_all
    int32_t lock_all_assert = 0;
    Vec<WinLock> locks;    // MPI_Win_lock: targets locked now
    bool started = false;  // MPI_Win_start without MPI_Win_complete (win_general.cpp)
    bool posted = false;   // MPI_Win_post without MPI_Win_wait
    Vec<int> targets;      // of the first, as ranks of the window
    Vec<int> origins;      // of the second: who has not completed yet, as far as known
    bool passive() const { return locked_all || !locks.empty(); }
    WinObject* next = nullptr;
    WinObject* previous = nullptr;
};

inline WinObject* find_win(uint32_t handle) noexcept {
    return static_cast<WinObject*>(find_object(handle, Kind::win));
}

}  // namespace fermata::front
