// A checkpoint takes what is on its way, and a restart begins again what was open.
#include "front/core/line.h"
#include "front/requests/engine.h"
#include "front/requests/message.h"
#include "front/requests/nonblocking.h"

namespace fermata::front {

void engine_drain(split::DrainReport* report) noexcept {
    clock::Slot& slot = front.clock->agent_slot();
    uint64_t open = 0;
    ReceiptTotals receipts{};
    if (!others_quiet(nullptr)) {
        open = 1;  // the round did not happen
    } else {
        SpinGuard guard(library_lock);
        pull_all(slot);
        for_each_request([&](RequestObject* r) FERMATA_LOCKS_UNSEEN {
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
