// A thread that waits while a checkpoint is pending: it pulls, says what it needs, and may be stopped.
#include "front/core/sys.h"
#include "front/requests/engine.h"
#include "front/requests/nonblocking.h"

namespace fermata::front {

namespace {

// Between two looks of a waiting thread. Short against the 50 ms that a safe state may cost, long enough to
// leave the core to the thread that is waited for.
constexpr uint32_t kYields = 16;

}  // namespace

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
    const bool library_has_it = r->what == What::send || r->what == What::recv ||
                                r->what == What::collective || r->what == What::foreign;
    if (r->state == State::complete && may_tell(r, record, true)) return;
    if (library_has_it && r->real != 0 && front.attention == 0) {
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
        if (front.attention == 0 && library_has_it && r->real != 0) {
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

}  // namespace fermata::front
