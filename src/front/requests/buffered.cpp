#include "front/requests/operations.h"

namespace fermata::front {
namespace {

// Programs size their buffer with the MPI_BSEND_OVERHEAD of their own mpi.h: 96 in MPICH, 128 in Open MPI,
// 512 in the standard ABI. Nothing is stored there, so any number up to the least of them keeps the promise.
constexpr Count kOverhead = 96;

struct Attached {
    void* address;
    Count size;
    Count used;  // by sends that are not complete, overhead included
};
Attached attached;

int pack(RequestObject* r, char** copy, Count* bytes) noexcept {
    TypeObject* t = r->type;
    if (t == nullptr) return FM_ERR_TYPE;
    if (r->count < 0) return FM_ERR_COUNT;
    bool dense = t->predefined && t->size == t->extent;
    Count size = r->count * t->size;
    int rc = 0;
    if (!dense) rc = LOWER(Pack_size)(r->count, real_of(t), real_of(r->comm), &size);
    if (rc != 0) return rc;
    *copy = static_cast<char*>(fm_alloc(static_cast<size_t>(size)));
    *bytes = 0;
    if (dense) {
        *bytes = size;
        if (size > 0) __builtin_memcpy(*copy, r->buf, static_cast<size_t>(size));
    } else {
        rc = LOWER(Pack)(r->buf, r->count, real_of(t), *copy, size, bytes, real_of(r->comm));
    }
    if (rc != 0) fm_free(*copy);
    return rc;
}

}  // namespace

// The operation proper is an orphan that carries the copy; the application's request is complete at once.
int start_buffered(RequestObject* r, clock::Slot& slot) noexcept {
    if (r->peer != FM_PROC_NULL) {
        Careful careful(split::this_thread());
        SpinGuard guard(library_lock);
        char* copy = nullptr;
        Count bytes = 0;
        int rc = pack(r, &copy, &bytes);
        if (rc != 0) return rc;
        if (engine.orphans != nullptr) reap_orphans(slot);
        Count room = bytes + kOverhead;
        if (attached.used + room > attached.size) {
            fm_free(copy);
            return FM_ERR_BUFFER;
        }
        attached.used += room;
        RequestObject* orphan = describe(What::send, copy, bytes, FM_PACKED, r->peer, r->tag, r->comm);
        orphan->flags = kInternal;
        orphan->copy = copy;
        orphan->mode = kBuffered;
        rc = start_send(orphan, slot);
        if (rc != 0) {
            orphan->real = 0;
            buffered_done(orphan);
            release_request(orphan);
            return rc;
        }
        link_orphan(orphan);
    }
    empty_status(&r->status);
    r->state = State::complete;
    return 0;
}

void buffered_done(RequestObject* r) noexcept {
    __atomic_fetch_sub(&attached.used, r->count + kOverhead, __ATOMIC_RELAXED);
}

extern "C" {

int fm_Buffer_attach(void* buffer, Count size) {
    Call call("MPI_Buffer_attach");
    if (attached.address != nullptr) return call.finish(FM_ERR_BUFFER);
    attached.address = buffer;
    attached.size = size;
    return 0;
}

int fm_Buffer_detach(void** buffer, Count* size) {
    Call call("MPI_Buffer_detach");
    Waiter waiter(call);
    for (;;) {
        Careful careful(call.record());
        {
            SpinGuard guard(library_lock);
            if (reap_orphans(slot_of(call.record())) == 0) break;
        }
        waiter.turn({});
    }
    *buffer = attached.address;
    *size = attached.size;
    attached = {};
    return 0;
}

}  // extern "C"

}  // namespace fermata::front
