// Windows: memory, displacement unit, hints and flavour; made again at restart when no access is open.
#pragma once

#include "front/objects/comm.h"

namespace fermata::front {

struct WinAttached {
    void* base;
    int64_t size;
};

struct WinObject : Object {
    WinObject() : Object(Kind::win) {}
    uint64_t uid = 0;
    void* clock = nullptr;    // its own clock: the communicator may be freed before the window
    CommObject* comm = nullptr;  // a private communicator of the window's members, never seen by the application
    int32_t flavor = 0;  // standard ABI MPI_WIN_FLAVOR_*
    int32_t model = 0;
    void* base = nullptr;
    int64_t size = 0;
    int32_t disp_unit = 1;
    void* owned = nullptr;  // memory of MPI_Win_allocate, ours to unmap
    uint64_t owned_size = 0;
    InfoPairs info;
    Text name;
    ErrhandlerObject* errhandler = nullptr;
    Attributes attributes;
    Vec<WinAttached> attached;  // dynamic windows
    // Synchronisation state.
    bool fenced = false;        // a fence opened an epoch
    bool locked_all = false;    // MPI_Win_lock_all
    int32_t lock_all_assert = 0;
    int32_t locks = 0;          // MPI_Win_lock: targets locked now
    int32_t started = 0;        // MPI_Win_start without MPI_Win_complete
    int32_t posted = 0;         // MPI_Win_post without MPI_Win_wait
    WinObject* next = nullptr;
    WinObject* previous = nullptr;
};

inline WinObject* find_win(uint32_t handle) noexcept {
    return static_cast<WinObject*>(find_object(handle, Kind::win));
}

}  // namespace fermata::front
