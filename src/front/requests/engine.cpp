#include "front/requests/engine.h"

#include "front/objects/file.h"
#include "front/requests/buffered.h"
#include "front/requests/generalized.h"
#include "front/requests/nonblocking.h"

namespace fermata::front {

constinit Engine engine{};

int start_recv_carefully(RequestObject* r, clock::Slot& slot) noexcept {
    if (__builtin_expect(r->peer == mpi::FM_PROC_NULL, 0)) {
        proc_null_status(&r->status);
        r->state = State::complete;
        return 0;
    }
    note_posted(r);
    r->matched = nullptr;
    Careful careful(split::this_thread());
    SpinGuard guard(library_lock);
    r->flags &= static_cast<uint8_t>(~kCounted);
    QueuedMessage* m = r->comm != nullptr
                           ? engine.queue.find(r->comm->uid, match_source(r->peer), match_tag(r->tag))
                           : nullptr;
    if (m == nullptr)
        return LOWER(Irecv)(r->buf, r->count, real_of(r->type), r->peer, r->tag, real_of(r->comm),
                            real_request(r));
    if (m->held) {
        // The lower half has matched it: the rest is an ordinary receive.
        auto real = static_cast<mpi::RealMessage>(m->message);
        int rc = LOWER(Imrecv)(r->buf, r->count, real_of(r->type), &real, real_request(r));
        if (rc != 0) return rc;
        r->flags |= kCounted;
        MessageQueue::destroy(engine.queue.take(m->comm, m->source, m->tag));
        queue_changed();
        return 0;
    }
    engine.queue.take(m->comm, m->source, m->tag);
    queue_changed();
    send_receipt(m, r->comm->world_of(m->source));
    r->matched = m;
    advance(r, slot);
    return 0;
}

void note_complete(RequestObject* r, const mpi::Status& status, int error, clock::Slot& slot) noexcept {
    r->real = 0;
    r->status = status;
    r->error = error;
    if (r->what == What::recv) {
        if (__builtin_expect(status.cancelled == 0 && (r->flags & kCounted) == 0, 1))
            count_received(slot,
                           r->world >= 0 || r->comm == nullptr ? r->world : r->comm->world_of(status.source));
    } else if (r->what == What::send) {
        if (__builtin_expect((r->flags & kCancelled) != 0 && status.cancelled != 0, 0)) {
            uncount_sent(slot, r);
        } else if (__builtin_expect(r->mode == kSynchronous && (front.careful & kFrozen) != 0, 0)) {
            // All are frozen, or will be before anything is taken: nobody hears of it before it is settled.
            r->flags |= kTaken;
            return;
        }
        if (__builtin_expect(r->mode == kBuffered, 0)) buffered_done(r);
    } else if (r->what == What::collective && __builtin_expect(r->collective->done != nullptr, 0)) {
        r->collective->done(r->collective);
    }
    r->state = State::complete;
}

namespace {

// One look at an operation of the lower half.
struct Ended {
    mpi::Status status{};
    int rc = 0;
    bool look(RequestObject* r) noexcept {
        int flag = 0;
        rc = LOWER(Test)(real_request(r), &flag, &status);
        return flag != 0 || rc != 0;
    }
};

// The oldest of its file first, none before it is complete: MPICH 4.0.2's ROMIO has one buffer for all that
// are open on a file, and spoils it when they are tested in turns.
bool advance_of_file(RequestObject* r, clock::Slot& slot) noexcept {
    FileObject* file = find(mpi::File{static_cast<uint32_t>(r->peer)});
    Ended ended;
    if (file == nullptr) {  // closed too early: on its own
        if (!ended.look(r)) return false;
        note_complete(r, ended.status, ended.rc, slot);
        return true;
    }
    SpinGuard guard(file->order);
    while (r->state == State::active) {
        auto* first = file->oldest;
        if (!ended.look(first)) return false;
        file->oldest = first->after;  // before its thread may see it complete, and give it back
        note_complete(first, ended.status, ended.rc, slot);
    }
    return true;
}

}  // namespace

bool advance(RequestObject* r, clock::Slot& slot) noexcept {
    if (r->state != State::active) return true;
    switch (r->what) {
        case What::recv:
            if (__builtin_expect(r->matched != nullptr && r->real == 0, 0)) {
                if (!arrived(r->matched)) return false;
                QueuedMessage* m = r->matched;
                r->matched = nullptr;
                r->error = deliver(m, r->buf, r->count, r->type, &r->status);
                MessageQueue::destroy(m);
                r->state = State::complete;
                return true;
            }
            [[fallthrough]];
        case What::send:
            if (__builtin_expect((r->flags & (kTaken | kUnread)) != 0, 0)) return read_by_now(r);
            [[fallthrough]];
        case What::collective:
        case What::partitioned_send:
        case What::foreign: {
            Ended ended;
            if (r->real == 0 || !ended.look(r)) return false;
            note_complete(r, ended.status, ended.rc, slot);
            return r->state == State::complete;
        }
        case What::of_file:
            return advance_of_file(r, slot);
        case What::generalized:
            if (r->generalized->done == 0) return false;
            r->state = State::complete;
            return true;
        case What::sendrecv: {
            bool sent = advance(r->pair->send, slot);
            bool received = advance(r->pair->recv, slot);
            if (!sent || !received) return false;
            r->status = r->pair->recv->status;
            r->error = r->pair->recv->error != 0 ? r->pair->recv->error : r->pair->send->error;
            r->state = State::complete;
            return true;
        }
        default:
            return true;
    }
}

bool may_tell(RequestObject* r, split::ThreadRecord* record, bool wait) noexcept {
    if (r->what != What::collective || (r->flags & kTold) != 0 || r->comm == nullptr ||
        r->collective == nullptr)
        return true;
    auto* on = r->comm->clock;
    if (on == nullptr || r->collective->instance == 0) return true;
    clock::Slot& slot = slot_of(record);
    uint32_t mode = record->mode;
    bool yes = true;
    if (wait)
        front.clock->tell(*on, slot, r->collective->instance);
    else
        yes = front.clock->try_tell(*on, slot, r->collective->instance);
    record->mode = mode;
    if (!yes) return false;
    r->flags |= kTold;
    // A restart inside tell() may have issued the operation again: allowed, but not complete any more.
    return r->state == State::complete;
}

int consume_other(RequestObject* r, mpi::Request* handle, mpi::Status* status) noexcept {
    int error = r->error;
    if (__builtin_expect(r->what == What::generalized, 0)) {
        Generalized g = *r->generalized;
        mpi::Status filled = r->status;
        if (g.query != nullptr) {
            int rc = g.query(g.query_fn, g.extra_state, &filled);
            if (rc != 0) error = rc;
        }
        if (status != nullptr) *status = filled;
        if (g.free != nullptr) {
            int rc = g.free(g.free_fn, g.extra_state);
            if (rc != 0 && error == 0) error = rc;
        }
    } else if (status != nullptr) {
        *status = r->status;
    }
    if (status != nullptr) status->error = error;
    if (__builtin_expect((r->flags & kPersistent) != 0, 0)) {
        if (r->what == What::send && r->mode == kSynchronous) channel_close(r);
        r->state = State::inactive;
        r->flags &= static_cast<uint8_t>(~(kTold | kCancelled | kCounted));
        r->error = 0;
        return error;
    }
    release_request(r);
    if (handle != nullptr) *handle = mpi::FM_REQUEST_NULL;
    return error;
}

void link_orphan(RequestObject* r) noexcept {
    r->flags |= kOrphan;
    r->flags &= static_cast<uint8_t>(~kPersistent);
    r->next = engine.orphans;
    engine.orphans = r;
}

void adopt_orphan(RequestObject* r) noexcept {
    SpinGuard guard(library_lock);
    link_orphan(r);
}

uint64_t reap_orphans(clock::Slot& slot) noexcept {
    uint64_t buffered = 0;
    for (RequestObject** link = &engine.orphans; *link != nullptr;) {
        RequestObject* r = *link;
        if (advance(r, slot)) {
            *link = r->next;
            release_request(r);
        } else {
            buffered += r->mode == kBuffered;
            link = &r->next;
        }
    }
    return buffered;
}

}  // namespace fermata::front
