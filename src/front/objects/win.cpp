// Windows: creation over memory of the upper half, synchronisation with a note of what is open, and rebuild.
#include "front/objects/win.h"

#include "front/core/collective.h"
#include "front/objects/api.h"
#include "front/objects/connected.h"
#include "front/objects/internal.h"
#include "front/objects/library_memory.h"
#include "front/objects/shared_segment.h"
#include "front/objects/win_alone.h"

namespace fermata::front {
namespace {

SpinLock list_lock;
WinObject* wins;

void link_win(WinObject* win) {
    SpinGuard guard(list_lock);
    win->next = wins;
    if (wins != nullptr) wins->previous = win;
    wins = win;
}

void unlink_win(WinObject* win) {
    SpinGuard guard(list_lock);
    (win->previous != nullptr ? win->previous->next : wins) = win->next;
    if (win->next != nullptr) win->next->previous = win->previous;
}

void release(WinObject* win) {
    if (win->owned != nullptr) fm_unmap(win->owned, win->owned_size);
    segment_drop(win->shared);
    if (win->comm != nullptr) comm_drop_private(win->comm);
    errhandler_unref(win->errhandler);
    fm_delete(win);
}

// The memory part of a creation, inside the scope, when the private communicator is there.
template <typename Memory>
int create_win(Call& call, Comm comm, Info info, int64_t size, int64_t unit, int flavor, Win* made,
               Memory&& memory) {
    *made = FM_WIN_NULL;
    CommObject* parent = find(comm);
    if (parent == nullptr) return call.finish(FM_ERR_COMM);
    if (parent->inter) return call.finish(comm, FM_ERR_COMM);
    if (parent->stranger) return call.finish(comm, refuse_strangers(call.function()));
    if (size < 0) return call.finish(comm, FM_ERR_SIZE);
    if (unit <= 0) return call.finish(comm, FM_ERR_DISP);
    auto* win = fm_new<WinObject>();
    win->flavor = flavor;
    win->size = size;
    win->disp_unit = static_cast<int32_t>(unit);
    if (InfoObject* hints = find(info)) win->info = hints->pairs;
    int rc;
    {
        CollectiveScope scope(call, *parent);
        rc = comm_make_private(parent, &win->comm);
        if (rc == FM_SUCCESS) rc = memory(win);
        if (rc == FM_SUCCESS) rc = win_make_real(win);
    }
    if (rc != FM_SUCCESS) {
        release(win);
        return call.finish(comm, rc);
    }
    int64_t model = win->alone ? FM_WIN_UNIFIED : FM_WIN_SEPARATE;
    int found = 0;
    if (!win->alone) LOWER(WinAttribute)(RealWin{win->real}, FM_WIN_MODEL, &model, &found);
    win->model = static_cast<int32_t>(model);
    win->errhandler = &errors_are_fatal;
    *made = Win{give_handle(win)};
    link_win(win);
    return FM_SUCCESS;
}

// Of MPI_Win_allocate: ours instead of the library's, so that it is part of the image.
void own_memory(WinObject* win) {
    win->owned_size = win->size == 0 ? 1 : static_cast<uint64_t>(win->size);
    win->owned = win->base = fm_map(win->owned_size);
}

int open_real(WinObject* win, RealWin* real) {
    RealInfoFor hints(win_hints(win));
    RealInfo info{hints.word()};
    RealComm comm{win->comm->real};
    if (win->flavor == FM_WIN_FLAVOR_DYNAMIC) return LOWER(Win_create_dynamic)(info, comm, real);
    if (win->flavor == FM_WIN_FLAVOR_ALLOCATE && library_allocates(win, real)) return FM_SUCCESS;
    if (win->flavor == FM_WIN_FLAVOR_ALLOCATE && win->base == nullptr) own_memory(win);
    return LOWER(Win_create)(win->base, win->size, win->disp_unit, info, comm, real);
}

// One call of the library on a window, under the gate of one-sided calls. One that stands alone has nothing
// to synchronise.
template <typename Function>
int synchronise(Call& call, const WinObject* win, bool within, Function function) {
    AccessScope scope(call, within);
    return win->alone ? FM_SUCCESS : function(RealWin{win->real});
}

}  // namespace

volatile int32_t epochs_open;

InfoPairs win_hints(const WinObject* win) {
    InfoPairs hints = win->info;
    info_remove(&hints, "no_locks");
    return hints;
}

WinObject* first_win() noexcept { return wins; }

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

extern "C" {

int fm_Win_create(void* base, Aint size, Aint disp_unit, Info info, Comm comm, Win* win) {
    Call call("MPI_Win_create");
    return create_win(call, comm, info, size, disp_unit, FM_WIN_FLAVOR_CREATE, win,
                      [base](WinObject* object) {
                          object->base = base;
                          return FM_SUCCESS;
                      });
}

int fm_Win_create_dynamic(Info info, Comm comm, Win* win) {
    Call call("MPI_Win_create_dynamic");
    return create_win(call, comm, info, 0, 1, FM_WIN_FLAVOR_DYNAMIC, win,
                      [](WinObject*) { return FM_SUCCESS; });
}

int fm_Win_allocate(Aint size, Aint disp_unit, Info info, Comm comm, void** baseptr, Win* win) {
    Call call("MPI_Win_allocate");
    int rc =
        create_win(call, comm, info, size, disp_unit, FM_WIN_FLAVOR_ALLOCATE, win, [](WinObject* object) {
            if (object->comm->size == 1) own_memory(object);  // nobody to share the library's with
            return FM_SUCCESS;
        });
    if (rc == FM_SUCCESS) *baseptr = find(*win)->base;
    return rc;
}

int fm_Win_allocate_shared(Aint size, Aint disp_unit, Info info, Comm comm, void** baseptr, Win* win) {
    Call call("MPI_Win_allocate_shared");
    return create_win(call, comm, info, size, disp_unit, FM_WIN_FLAVOR_SHARED, win, [=](WinObject* object) {
        int rc = segment_make(object->comm, size, static_cast<int32_t>(disp_unit), &object->shared);
        if (rc != FM_SUCCESS) return rc;
        object->base =
            object->shared->start + object->shared->offsets[static_cast<size_t>(object->comm->rank)];
        *baseptr = object->base;
        return FM_SUCCESS;
    });
}

int fm_Win_shared_query(Win win, int rank, Aint* size, Aint* disp_unit, void** baseptr) {
    Call call("MPI_Win_shared_query");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    if (object->shared == nullptr) return call.finish(win, FM_ERR_RMA_FLAVOR);
    const SharedSegment& segment = *object->shared;
    auto members = segment.sizes.size();
    size_t which = 0;
    if (rank == FM_PROC_NULL) {
        // The first with any memory (MPI-4.0 12.2.3); without one, nothing.
        while (which < members && segment.sizes[which] == 0) which++;
    } else {
        if (rank < 0 || static_cast<size_t>(rank) >= members) return call.finish(win, FM_ERR_RANK);
        which = static_cast<size_t>(rank);
    }
    bool none = which == members;
    *size = none ? 0 : segment.sizes[which];
    *disp_unit = none ? 1 : segment.units[which];
    *baseptr = none || *size == 0 ? nullptr : segment.start + segment.offsets[which];
    return FM_SUCCESS;
}

int fm_Win_attach(Win win, void* base, Aint size) {
    Call call("MPI_Win_attach");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    int rc = object->alone ? FM_SUCCESS : LOWER(Win_attach)(RealWin{object->real}, base, size);
    if (rc == FM_SUCCESS) object->attached.push_back({base, size});
    return call.finish(win, rc);
}

int fm_Win_detach(Win win, const void* base) {
    Call call("MPI_Win_detach");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    int rc = object->alone ? FM_SUCCESS : LOWER(Win_detach)(RealWin{object->real}, base);
    if (rc != FM_SUCCESS) return call.finish(win, rc);
    for (size_t i = 0; i < object->attached.size(); i++)
        if (object->attached[i].base == base) {
            object->attached.erase(object->attached.begin() + static_cast<ptrdiff_t>(i));
            break;
        }
    return FM_SUCCESS;
}

int fm_Win_free(Win* win) {
    Call call("MPI_Win_free");
    WinObject* object = find(*win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    if (object->started || object->posted || object->passive()) return call.finish(*win, FM_ERR_RMA_SYNC);
    if (int rc = attributes_delete_all({Owner::win, object->handle}, &object->attributes))
        return call.finish(*win, rc);
    int rc;
    {
        CollectiveScope scope(call, *object->comm);
        // The library's own barrier may be skipped by hint (no_locks and friends); the memory below must not
        // go while others still use it.
        rc = LOWER(Barrier)(RealComm{object->comm->real});
        RealWin real{object->real};
        if (rc == FM_SUCCESS && !object->alone) rc = LOWER(Win_free)(&real);
    }
    if (rc != FM_SUCCESS) return call.finish(*win, rc);
    unlink_win(object);
    take_handle(object);
    release(object);
    *win = FM_WIN_NULL;
    return FM_SUCCESS;
}

int fm_Win_get_group(Win win, Group* group) {
    Call call("MPI_Win_get_group");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    *group = Group{make_group(Ranks(object->comm->members))};
    return FM_SUCCESS;
}

int fm_Win_get_info(Win win, Info* info_used) {
    Call call("MPI_Win_get_info");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    *info_used = Info{make_info(object->info)};
    return FM_SUCCESS;
}

int fm_Win_set_info(Win win, Info info) {
    Call call("MPI_Win_set_info");
    WinObject* object = find(win);
    InfoObject* hints = find(info);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    if (hints == nullptr) return call.finish(win, FM_ERR_INFO);
    for (const InfoPair& pair : hints->pairs) info_put(&object->info, pair.key.c_str(), pair.value.c_str());
    return FM_SUCCESS;
}

int fm_Win_get_name(Win win, char* win_name, int* resultlen) {
    Call call("MPI_Win_get_name");
    WinObject* object = find(win);
    if (object == nullptr && win != FM_WIN_NULL) return call.finish(FM_ERR_WIN);
    Text null_name("MPI_WIN_NULL");  // MPI-4.0 7.8
    const Text& name = object != nullptr ? object->name : null_name;
    __builtin_memcpy(win_name, name.c_str(), name.size() + 1);
    *resultlen = static_cast<int>(name.size());
    return FM_SUCCESS;
}

int fm_Win_set_name(Win win, const char* win_name) {
    Call call("MPI_Win_set_name");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    size_t length = __builtin_strlen(win_name);
    object->name.assign(win_name, length < FM_MAX_OBJECT_NAME ? length : FM_MAX_OBJECT_NAME - 1);
    return FM_SUCCESS;
}

// ---- synchronisation --------------------------------------------------------------------------------------

int fm_Win_fence(int assert, Win win) {
    Call call("MPI_Win_fence");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    if (object->started || object->posted) return call.finish(win, FM_ERR_RMA_SYNC);
    CollectiveScope scope(call, *object->comm);
    int rc = object->alone ? FM_SUCCESS : LOWER(Win_fence)(assert, RealWin{object->real});
    if (rc == FM_SUCCESS) object->fenced = (FM_MODE_NOSUCCEED & assert) == 0;
    scope.end();
    return call.finish(win, rc);
}

int fm_Win_lock_all(int assert, Win win) {
    Call call("MPI_Win_lock_all");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    if (object->started) return call.finish(win, FM_ERR_RMA_SYNC);
    int rc =
        synchronise(call, object, false, [&](RealWin real) { return LOWER(Win_lock_all)(assert, real); });
    if (rc == FM_SUCCESS) {
        object->locked_all = true;
        epochs_add(1);
        object->lock_all_assert = assert;
    }
    return call.finish(win, rc);
}

int fm_Win_unlock_all(Win win) {
    Call call("MPI_Win_unlock_all");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    if (object->started) return call.finish(win, FM_ERR_RMA_SYNC);
    int rc = synchronise(call, object, true, [&](RealWin real) { return LOWER(Win_unlock_all)(real); });
    if (rc == FM_SUCCESS && object->locked_all) {
        object->locked_all = false;
        epochs_add(-1);
    }
    return call.finish(win, rc);
}

int fm_Win_lock(int lock_type, int rank, int assert, Win win) {
    Call call("MPI_Win_lock");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    if (object->started) return call.finish(win, FM_ERR_RMA_SYNC);
    int rc = synchronise(call, object, false,
                         [&](RealWin real) { return LOWER(Win_lock)(lock_type, rank, assert, real); });
    if (rc == FM_SUCCESS && rank != FM_PROC_NULL) {
        object->locks.push_back({rank, lock_type, assert});
        epochs_add(1);
    }
    return call.finish(win, rc);
}

int fm_Win_unlock(int rank, Win win) {
    Call call("MPI_Win_unlock");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    if (object->started) return call.finish(win, FM_ERR_RMA_SYNC);
    int rc = synchronise(call, object, true, [&](RealWin real) { return LOWER(Win_unlock)(rank, real); });
    if (rc == FM_SUCCESS)
        for (size_t i = 0; i < object->locks.size(); i++)
            if (object->locks[i].target == rank) {
                object->locks.erase(object->locks.begin() + static_cast<ptrdiff_t>(i));
                epochs_add(-1);
                break;
            }
    return call.finish(win, rc);
}

}  // extern "C"
}  // namespace fermata::front
