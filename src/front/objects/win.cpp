// Windows: the real one over memory of the upper half, at creation and at rebuild.
#include "front/objects/win.h"

#include "front/core/bridge.h"
#include "front/objects/api.h"
#include "front/objects/internal.h"
#include "front/objects/library_memory.h"
#include "front/objects/shared_segment.h"

namespace fermata::front {
namespace {

SpinLock list_lock;
WinObject* wins;

int open_real(WinObject* win, RealWin* real) {
    RealInfoFor hints(win_hints(win));
    RealInfo info{hints.word()};
    RealComm comm{win->comm->real};
    if (win->flavor == FM_WIN_FLAVOR_DYNAMIC) return LOWER(Win_create_dynamic)(info, comm, real);
    if (win->flavor == FM_WIN_FLAVOR_ALLOCATE && library_allocates(win, real)) return FM_SUCCESS;
    if (win->flavor == FM_WIN_FLAVOR_ALLOCATE && win->base == nullptr) win_own_memory(win);
    return LOWER(Win_create)(win->base, win->size, win->disp_unit, info, comm, real);
}

}  // namespace

InfoPairs win_hints(const WinObject* win) {
    InfoPairs hints = win->info;
    info_remove(&hints, "no_locks");
    return hints;
}

WinObject* first_win() noexcept { return wins; }

void win_link(WinObject* win) noexcept {
    SpinGuard guard(list_lock);
    win->next = wins;
    if (wins != nullptr) wins->previous = win;
    wins = win;
}

void win_unlink(WinObject* win) noexcept {
    SpinGuard guard(list_lock);
    (win->previous != nullptr ? win->previous->next : wins) = win->next;
    if (win->next != nullptr) win->next->previous = win->previous;
}

void win_release(WinObject* win) noexcept {
    if (win->owned != nullptr) fm_unmap(win->owned, win->owned_size);
    segment_drop(win->shared);
    if (win->comm != nullptr) comm_drop_private(win->comm);
    errhandler_unref(win->errhandler);
    fm_delete(win);
}

void win_own_memory(WinObject* win) noexcept {
    win->owned_size = win->size == 0 ? 1 : static_cast<uint64_t>(win->size);
    win->owned = win->base = fm_map(win->owned_size);
}

int win_lock_started(const WinObject* win) noexcept {
    for (int32_t target : win->targets)
        if (int rc = LOWER(Win_lock)(FM_LOCK_SHARED, target, FM_MODE_NOCHECK, RealWin{win->real})) return rc;
    return FM_SUCCESS;
}

bool win_stands_alone(const WinObject* win, bool again) noexcept {
    bool own_memory = win->flavor == FM_WIN_FLAVOR_ALLOCATE || win->flavor == FM_WIN_FLAVOR_SHARED;
    return win->comm->size == 1 && (own_memory || again) && front.library_level >= FM_THREAD_MULTIPLE &&
           on_open_mpi();
}

int win_make_real(WinObject* win) noexcept {
    bool again = win->handle != 0;
    if (again && win->shared != nullptr)
        if (int rc = segment_make_again(win->comm, win->shared)) return rc;
    win->real = 0;
    win->alone = win_stands_alone(win, again);
    if (win->alone) return FM_SUCCESS;
    RealWin real{};
    if (int rc = open_real(win, &real)) return rc;
    win->real = static_cast<uint64_t>(real);
    for (const WinAttached& part : win->attached)
        if (int rc = LOWER(Win_attach)(real, part.base, part.size)) return rc;
    // Epochs that were open when the image was written; all their operations had been completed.
    if (again && win->fence_open)
        if (int rc = LOWER(Win_fence)(FM_MODE_NOPRECEDE, real)) return rc;
    if (win->locked_all)
        if (int rc = LOWER(Win_lock_all)(win->lock_all_assert, real)) return rc;
    for (const WinLock& lock : win->locks)
        if (int rc = LOWER(Win_lock)(lock.type, lock.target, lock.assert, real)) return rc;
    return win_lock_started(win);
}

int win_before_save(WinObject* win) noexcept {
    RealWin real{win->real};
    bool locked = win->passive() || !win->targets.empty();
    // A fence may have been the beginning of an epoch or the end of the last one; only who opened another
    // kind of epoch since then knows, so all have to say that they did not.
    int mine = win->fenced && !locked && !win->started && !win->posted, all = 0;
    int rc = LOWER(Allreduce)(&mine, &all, 1, to_real(FM_INT), to_real(FM_MIN), RealComm{win->comm->real});
    if (rc != FM_SUCCESS) return rc;
    win->fence_open = all != 0;
    if (win->alone) return FM_SUCCESS;
    // Complete what the application has begun: an access may take effect at any moment of its epoch, so why
    // not now.
    if (win->fence_open) return LOWER(Win_fence)(0, real);
    return locked ? LOWER(Win_flush_all)(real) : FM_SUCCESS;
}

}  // namespace fermata::front
