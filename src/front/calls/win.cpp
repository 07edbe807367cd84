// MPI_Win_*: creation over memory of the upper half, questions, and synchronisation with a note of what is
// open.
#include "front/objects/win.h"

#include "front/objects/api.h"
#include "front/objects/connected.h"
#include "front/objects/internal.h"
#include "front/objects/shared_segment.h"
#include "front/requests/collective.h"
#include "front/requests/logged.h"

namespace fermata::front {
namespace {

// The memory part of a creation, inside the scope, when the private communicator is there.
template <typename Memory>
int create_win(Call& call, Comm comm, Info info, int64_t size, int64_t unit, int flavor, Win* made,
               Memory&& memory) {
    *made = FM_WIN_NULL;
    CommObject* parent = find(comm);
    if (parent == nullptr) return call.finish(FM_ERR_COMM);
    if (parent->inter) return call.finish(comm, FM_ERR_COMM);
    if (parent->stranger) return call.finish(comm, refuse_strangers(call.function()));
    if (logged::on() && parent->size > 1) logged::refuse(call.function());
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
        win_release(win);
        return call.finish(comm, rc);
    }
    int64_t model = win->alone ? FM_WIN_UNIFIED : FM_WIN_SEPARATE;
    int found = 0;
    if (!win->alone) LOWER(WinAttribute)(RealWin{win->real}, FM_WIN_MODEL, &model, &found);
    win->model = static_cast<int32_t>(model);
    win->errhandler = &errors_are_fatal;
    *made = Win{give_handle(win)};
    win_link(win);
    return FM_SUCCESS;
}

// One call of the library on a window, under the gate of one-sided calls. One that stands alone has nothing
// to synchronise.
template <typename Function>
int synchronise(Call& call, const WinObject* win, bool within, Function function) {
    AccessScope scope(call, within);
    return win->alone ? FM_SUCCESS : function(RealWin{win->real});
}

}  // namespace

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
            if (object->comm->size == 1) win_own_memory(object);  // nobody to share the library's with
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
    win_unlink(object);
    take_handle(object);
    win_release(object);
    *win = FM_WIN_NULL;
    return FM_SUCCESS;
}

int fm_Win_get_group(Win win, Group* group) {
    Call call("MPI_Win_get_group");
    WinObject* object = find(win);
    if (object == nullptr) return call.finish(FM_ERR_WIN);
    *group = Group{make_group(Members(object->comm->members))};
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
