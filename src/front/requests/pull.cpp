// Taking messages out of the lower half, and when that is allowed.
#include "front/core/fatal.h"
#include "front/requests/engine.h"

namespace fermata::front {
namespace {

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
    // Its buffer is as long as it is: what fails is the way to the sender, and nobody else will hear of that.
    if (LOWER(Test)(reinterpret_cast<mpi::RealRequest*>(&message->real), &flag, nullptr) != 0)
        fatal_line("fermata: a message that was taken for a checkpoint has not come whole: MPI_Test failed");
    if (flag != 0) message->real = 0;
    return flag != 0;
}

namespace {

void pull_comm(CommObject* comm, clock::Slot& slot) noexcept FERMATA_WANTS(library_lock) {
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

}  // namespace

void pull_all(clock::Slot& slot) noexcept {
    engine.queue.for_each([](QueuedMessage* m) FERMATA_LOCKS_UNSEEN {
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

}  // namespace fermata::front
