#include "front/p2p/message.h"

#include "front/core/fatal.h"
#include "front/p2p/generalized.h"

namespace fermata::front {
namespace {

MessageObject* messages;
SpinLock messages_lock;

}  // namespace

MessageObject* new_message(CommObject* comm, const mpi::Status& envelope) noexcept {
    auto* m = fm_new<MessageObject>();
    m->comm = comm;
    if (!comm->predefined) comm_ref(comm);
    m->source = envelope.source;
    m->tag = envelope.tag;
    m->bytes = envelope.count;
    give_handle(m);
    SpinGuard guard(messages_lock);
    m->next = messages;
    if (messages != nullptr) messages->previous = m;
    messages = m;
    return m;
}

void release_message(MessageObject* m) noexcept {
    {
        SpinGuard guard(messages_lock);
        (m->previous != nullptr ? m->previous->next : messages) = m->next;
        if (m->next != nullptr) m->next->previous = m->previous;
    }
    take_handle(m);
    if (m->queued != nullptr) MessageQueue::destroy(m->queued);
    if (!m->comm->predefined) comm_unref(m->comm);
    fm_delete(m);
}

uint64_t drain_messages() noexcept {
    uint64_t open = 0;
    for (MessageObject* m = messages; m != nullptr; m = m->next) {
        if (m->queued == nullptr) {
            QueuedMessage* q = MessageQueue::make(m->comm->uid, m->source, m->tag, m->bytes);
            MessageQueue::allocate(q);
            auto real = static_cast<mpi::RealMessage>(m->real);
            mpi::RealRequest request{};
            if (LOWER(Imrecv)(q->data, q->bytes, real_byte(), &real, &request) != 0)
                fatal_line("fermata: cannot receive a matched message for the checkpoint: MPI_Imrecv failed");
            q->real = static_cast<uint64_t>(request);
            m->real = 0;
            m->queued = q;
        }
        if (!arrived(m->queued)) open++;
    }
    return open;
}

}  // namespace fermata::front
