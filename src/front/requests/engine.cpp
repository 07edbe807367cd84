#include "front/requests/engine.h"

#include "front/core/bridge.h"
#include "front/core/fatal.h"
#include "front/core/line.h"
#include "front/core/sys.h"
#include "front/objects/file.h"
#include "front/requests/buffered.h"
#include "front/requests/generalized.h"
#include "front/requests/message.h"
#include "front/requests/nonblocking.h"

namespace fermata::front {

constinit Engine engine{};

namespace {

// Between two looks of a waiting thread. Short against the 50 ms that a safe state may cost, long enough to
// leave the core to the thread that is waited for.
constexpr uint32_t kYields = 16;
// At most so many messages per communicator and round, so that a flood does not keep a thread from its own
// work.
constexpr int kPullBatch = 256;

}  // namespace

void forget_messages(CommObject& comm) noexcept {
    SpinGuard guard(library_lock);
    if (engine.queue.purge(comm.uid) != 0) queue_changed();
}

void queue_changed() noexcept {
    if (engine.queue.empty())
        clear_careful(kQueued);
    else
        set_careful(kQueued);
}

// ---- others

bool others_quiet(const split::ThreadRecord* self) noexcept {
    if (engine.armed == 0) return false;
    int32_t end = record_end;
    for (int32_t i = 0; i < end; i++) {
        const split::ThreadRecord* r = records[i];
        if (r == nullptr || r == self || r->in_mpi == 0) continue;
        if (r->run == split::Run::stopped || r->run == split::Run::gone || r->run == split::Run::free)
            continue;
        uint32_t mode = r->mode;
        if (mode == kCareful) continue;
        // Two threads inside the library at once needs a library that allows it.
        if (captive(mode) && front.library_level >= mpi::FM_THREAD_MULTIPLE) continue;
        return false;
    }
    return true;
}

// ---- pulling

void fetch(QueuedMessage* m) noexcept {
    MessageQueue::allocate(m);
    auto real = static_cast<mpi::RealMessage>(m->message);
    mpi::RealRequest request{};
    if (LOWER(Imrecv)(m->data, m->bytes, real_byte(), &real, &request) != 0)
        fatal_line("fermata: cannot receive a message for the checkpoint: MPI_Imrecv failed");
    m->real = static_cast<uint64_t>(request);
    m->held = false;
    arrived(m);
}

bool arrived(QueuedMessage* message) noexcept {
    if (message->held) return false;
    if (message->real == 0) return true;
    int flag = 0;
    LOWER(Test)(reinterpret_cast<mpi::RealRequest*>(&message->real), &flag, nullptr);
    if (flag != 0) message->real = 0;
    return flag != 0;
}

namespace {

void pull_comm(CommObject* comm, clock::Slot& slot) noexcept {
    if (comm->real == 0 || comm->stranger) return;
    for (int i = 0; i < kPullBatch; i++) {
        int found = 0;
        mpi::RealMessage real{};
        mpi::Status status{};
        if (LOWER(PullOne)(real_of(comm), &found, &real, &status) != 0 || found == 0) return;
        QueuedMessage* m = MessageQueue::make(comm->uid, status.source, status.tag, status.count);
        m->message = static_cast<uint64_t>(real);
        m->held = true;
        count_received(slot, comm->world_of(status.source));
        if (may_take()) fetch(m);
        engine.queue.push(m);
    }
}

// Engine's lock held, others quiet.
void pull_all(clock::Slot& slot) noexcept {
    engine.queue.for_each([](QueuedMessage* m) {
        if (m->held && may_take())
            fetch(m);
        else
            arrived(m);
    });
    pull_comm(&comm_world, slot);
    pull_comm(&comm_self, slot);
    for (CommObject* comm = first_comm(); comm != nullptr; comm = comm->next) pull_comm(comm, slot);
    if (!engine.queue.empty()) set_careful(kQueued);
}

}  // namespace

void pull(const split::ThreadRecord* self, clock::Slot& slot) noexcept {
    if (!others_quiet(self)) return;
    SpinGuard guard(library_lock);
    pull_all(slot);
}

void sweep_receives(const split::ThreadRecord* self, clock::Slot& slot) noexcept {
    if (!others_quiet(self)) return;
    SpinGuard guard(library_lock);
    for_each_request([&](RequestObject* r) {
        if (r->what == What::recv && r->state == State::active && r->real != 0) advance(r, slot);
    });
}

// ---- one operation

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

// ---- delivery

uint64_t self_comm() noexcept {
    if (engine.self_comm == 0) {
        mpi::RealComm dup{};
        if (LOWER(Comm_dup)(to_real(mpi::FM_COMM_SELF), &dup) != 0)
            fatal_line("fermata: cannot duplicate MPI_COMM_SELF to deliver a drained message");
        engine.self_comm = static_cast<uint64_t>(dup);
    }
    return engine.self_comm;
}

int deliver(QueuedMessage* m, void* buf, int64_t count, TypeObject* type, mpi::Status* status) noexcept {
    int rc = 0;
    int64_t bytes = m->bytes;
    bool dense = type != nullptr && type->predefined && type->size == type->extent;
    if (dense && bytes <= count * type->size) {
        if (bytes > 0) __builtin_memcpy(buf, m->data, static_cast<size_t>(bytes));
    } else if (bytes > 0 || count < 0) {
        // The real datatype engine knows every layout, and what a message that ends inside an element means:
        // send it to ourselves on a communicator nobody else uses.
        auto self = static_cast<mpi::RealComm>(self_comm());
        mpi::RealRequest reqs[2] = {};
        mpi::Status statuses[2] = {};
        rc = LOWER(Irecv)(buf, count, real_of(type), 0, 0, self, &reqs[0]);
        if (rc == 0) {
            rc = LOWER(Isend)(m->data, bytes, real_byte(), 0, 0, self, &reqs[1]);
            for (int i = 0; i < 2 && rc == 0; i++) {
                int flag = 0;
                while (flag == 0 && rc == 0) rc = LOWER(Test)(&reqs[i], &flag, &statuses[i]);
                if (rc == mpi::FM_ERR_TRUNCATE && i == 0) {
                    bytes = statuses[0].count;
                    int sent = 0;
                    while (sent == 0 && LOWER(Test)(&reqs[1], &sent, nullptr) == 0) {
                    }
                }
            }
        }
    }
    if (status != nullptr) *status = mpi::Status{m->source, m->tag, rc, 0, bytes, 0};
    return rc;
}

// ---- waiting

Waiter::~Waiter() { front.clock->waited(slot_of(call_.record()), site_); }

void Waiter::say_needs(const Needs& needs, clock::Slot& slot) noexcept {
    bool any = needs.any;
    if (needs.world != nullptr) {
        if (*needs.world >= 0)
            front.clock->need_message(slot, *needs.world, needs.wanted);
        else
            any = true;
    }
    auto say = [&](RequestObject* r) {
        if (r->state != State::active) return;
        if (r->what == What::send || r->what == What::partitioned_send) {
            // Its receiver holds the message and must get on; nobody can say how far.
            any |= front.clock->job_sends_synchronously();
        } else if (r->what == What::recv && r->matched == nullptr && (r->flags & kCounted) == 0) {
            if (r->world >= 0)
                front.clock->need_message(slot, r->world, label_of(r->comm, r->tag));
            else
                any = true;
        } else if (r->what == What::collective && r->comm != nullptr && r->comm->clock != nullptr) {
            front.clock->need_collective(slot, *r->comm->clock, r->collective->instance);
        }
    };
    for (int i = 0; i < needs.request_count; i++) {
        RequestObject* r = needs.requests[i];
        if (r == nullptr) continue;
        if (r->what == What::sendrecv) {
            if (r->state != State::active) continue;
            say(r->pair->recv);
            say(r->pair->send);
        } else {
            say(r);
        }
    }
    if (any) front.clock->need_anything(slot, site_);
}

void Waiter::turn(const Needs& needs) noexcept {
    split::ThreadRecord* record = call_.record();
    if ((front.careful & kFrozen) != 0 || record->stop != 0) {
        if (call_.stop_point()) {
            turns_ = 0;
            naps_.restart();
            return;
        }
    }
    if (!pending_checkpoint()) {
        // Waiting for something the lower half knows nothing of (a generalized request, a partition).
        if (++turns_ < 64)
            cpu_pause();
        else
            yield_cpu();
        return;
    }
    clock::Slot& slot = slot_of(record);
    pull(record, slot);
    if (front.clock->waiting(slot, site_, now_ns())) {
        // A message may have come for a receive that nobody has tested: it is not the one that is missing.
        sweep_receives(record, slot);
        say_needs(needs, slot);
    }
    if (++turns_ < kYields)
        yield_cpu();
    else
        sleep_ns(naps_.next_ns());
}

void ask_for_captives(uint64_t now_ns) noexcept {
    if (!pending_checkpoint() || (front.careful & kFrozen) != 0 || !front.clock->known() || may_take())
        return;
    for (int32_t i = 0; i < record_end; i++) {
        split::ThreadRecord* record = records[i];
        if (record == nullptr || record->in_mpi == 0 || record->mode != kSending) continue;
        clock::Slot& slot = slot_of(record);
        if (front.clock->polling(slot, now_ns)) front.clock->need_anything(slot, slot.poll_site);
    }
}

void count_watched(clock::Slot& slot, int32_t world, const CommObject* comm, int tag,
                   RequestObject* r) noexcept {
    if (front.threads != 0) slot.labelled(world, label_of(comm, tag));
    if ((front.watch & kChannels) == 0) return;
    uint64_t place = channel_count(world, comm, tag);
    if (r != nullptr && r->what == What::send && r->mode < kSynchronous) r->place = place;
}

namespace {
bool uncount(clock::Slot& slot, int32_t world) noexcept {
    if (static_cast<uint32_t>(world) >= static_cast<uint32_t>(front.world_size)) return false;
    __atomic_fetch_sub(&slot.sent[world], 1, __ATOMIC_RELAXED);
    return (front.watch & kChannels) != 0;
}
}  // namespace

void uncount_sent(clock::Slot& slot, int32_t world, const CommObject* comm, int tag) noexcept {
    if (uncount(slot, world)) channel_uncount(world, comm, tag);
}

void uncount_sent(clock::Slot& slot, const RequestObject* r) noexcept {
    if (!uncount(slot, r->world)) return;
    if (r->what == What::send && r->mode != kBuffered)
        channel_uncount(r);
    else
        channel_uncount(r->world, r->comm, r->tag);
}

void poll_failed(Call& call, RequestObject* const* requests, int count) noexcept {
    if (!pending_checkpoint()) return;
    split::ThreadRecord* record = call.record();
    clock::Slot& slot = slot_of(record);
    {
        Careful careful(record);
        pull(record, slot);
    }
    if (!front.clock->polling(slot, now_ns())) return;
    auto collective = [](const RequestObject* r) {
        return r->what == What::collective && r->comm != nullptr && r->comm->clock != nullptr;
    };
    bool collectives = false, others = count == 0;
    for (int i = 0; i < count; i++)
        if (!ignored(requests[i])) (collective(requests[i]) ? collectives : others) = true;
    if (others || !collectives) return front.clock->need_anything(slot, slot.poll_site);
    for (int i = 0; i < count; i++)
        if (!ignored(requests[i]))
            front.clock->need_collective(slot, *requests[i]->comm->clock, requests[i]->collective->instance);
}

void wait_complete(Call& call, RequestObject* r, RequestObject* const* all, int count) noexcept {
    split::ThreadRecord* record = call.record();
    bool simple = r->what == What::send || r->what == What::recv || r->what == What::collective ||
                  r->what == What::foreign;
    if (r->state == State::complete && may_tell(r, record, true)) return;
    if (simple && r->real != 0 && front.attention == 0) {
        int next = 0;
        mpi::Status status{};
        int rc = LOWER(WaitSpin)(1, real_request(r), &status, &front.attention, &next);
        if (__builtin_expect(next == 1, 1)) {
            note_complete(r, status, rc, slot_of(record));
            if (__builtin_expect(r->state == State::complete && may_tell(r, record, true), 1)) return;
        }
    }
    Waiter waiter(call);
    Waiter::Needs needs;
    needs.requests = all != nullptr ? all : &r;
    needs.request_count = all != nullptr ? count : 1;
    for (;;) {
        if (r->state == State::complete) {
            if (may_tell(r, record, true)) return;
            continue;
        }
        if (front.attention == 0 && simple && r->real != 0) {
            int next = 0;
            mpi::Status status{};
            int rc = LOWER(WaitSpin)(1, real_request(r), &status, &front.attention, &next);
            if (next == 1) note_complete(r, status, rc, slot_of(record));
            continue;
        }
        Careful careful(record);
        {
            SpinGuard guard(library_lock);
            if (advance(r, slot_of(record))) continue;
        }
        waiter.turn(needs);
    }
}

// ---- checkpoint

void engine_drain(split::DrainReport* report) noexcept {
    clock::Slot& slot = front.clock->agent_slot();
    uint64_t open = 0;
    ReceiptTotals receipts{};
    if (!others_quiet(nullptr)) {
        open = 1;  // the round did not happen
    } else {
        SpinGuard guard(library_lock);
        pull_all(slot);
        for_each_request([&](RequestObject* r) {
            if (r->state != State::active || r->what == What::generalized || r->what == What::sendrecv)
                return;
            bool obliged = true;
            if (r->what == What::collective) {
                auto* on = r->comm != nullptr ? r->comm->clock : nullptr;
                obliged = on == nullptr || r->collective->instance <= front.clock->target(*on);
                if (!obliged) return;
            }
            if (r->what == What::recv && r->matched != nullptr && r->real == 0) {
                // Only the bytes: delivery is left to the thread that waits.
                if (!arrived(r->matched)) open++;
                return;
            }
            if (r->real == 0) return;
            // A posted receive may stay open for ever; one of a matched message may not, its bytes are on
            // their way.
            if (!advance(r, slot) && (r->what != What::recv || (r->flags & kCounted) != 0)) open++;
        });
        engine.queue.for_each([&](QueuedMessage* m) { open += m->real != 0 || m->held; });
        if (may_take()) open += drain_messages();
        ReceiptTotals own = drain_receipts();
        receipts = own;
        open += own.open;
        reap_orphans(slot);
    }
    clock::Totals totals = front.clock->totals();
    report->sent = totals.sent + receipts.sent;
    report->received = totals.received + receipts.received;
    report->open = open;
}

namespace {

template <typename T, typename Less>
void sort(Vec<T>& list, Less less) noexcept {
    // Shell sort: no allocation, no library.
    size_t gap = 1;
    while (gap < list.size() / 3) gap = gap * 3 + 1;
    for (; gap > 0; gap /= 3)
        for (size_t i = gap; i < list.size(); i++) {
            T item = list[i];
            size_t j = i;
            for (; j >= gap && less(item, list[j - gap]); j -= gap) list[j] = list[j - gap];
            list[j] = item;
        }
}

int complain(char* error, size_t size, const char* what, int rc) noexcept {
    Line(error, size) << "restart: cannot " << what << " again: " << error_text(rc);
    return 1;
}

}  // namespace

int engine_rebuild(char* error, size_t size) noexcept {
    engine.self_comm = 0;
    Vec<RequestObject*> collectives, receives;
    const RequestObject* leftover = nullptr;
    for_each_request([&](RequestObject* r) {
        if (r->what == What::collective && r->comm != nullptr && r->comm->clock != nullptr) {
            bool begun =
                r->state == State::active || (r->state == State::complete && (r->flags & kTold) == 0);
            auto* on = r->comm->clock;
            if (begun && r->collective->instance > front.clock->target(*on)) {
                collectives.push_back(r);
                return;
            }
        }
        if (r->state != State::active || r->real == 0) return;
        if (r->what == What::recv && (r->flags & kCounted) == 0)
            receives.push_back(r);
        else
            leftover = r;
    });
    if (leftover != nullptr)
        return complain(error, size, "do an operation that the drain left open", mpi::FM_ERR_INTERN);

    sort(collectives, [](const RequestObject* a, const RequestObject* b) {
        return a->comm->uid != b->comm->uid ? a->comm->uid < b->comm->uid
                                            : a->collective->instance < b->collective->instance;
    });
    for (RequestObject* r : collectives) {
        r->real = 0;
        // The barrier of a freed communicator that another member has forgotten already: it found the barrier
        // complete, so every member has entered it (objects/rebuild.cpp makes no real one then).
        if (r->comm->farewell == r && r->comm->real == 0) {
            r->state = State::complete;
            continue;
        }
        r->state = State::active;
        int rc = r->collective->issue(r->collective, real_of(r->comm), real_request(r));
        if (rc != 0) return complain(error, size, r->collective->name, rc);
    }
    sort(receives, [](const RequestObject* a, const RequestObject* b) { return a->posted < b->posted; });
    for (RequestObject* r : receives) {
        r->real = 0;
        int rc = LOWER(Irecv)(r->buf, r->count, real_of(r->type), r->peer, r->tag, real_of(r->comm),
                              real_request(r));
        if (rc == 0 && (r->flags & kCancelled) != 0) rc = LOWER(Cancel)(real_request(r));
        if (rc != 0) return complain(error, size, "post a receive", rc);
    }
    return 0;
}

}  // namespace fermata::front
