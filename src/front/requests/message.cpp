#include "front/requests/message.h"

#include "front/core/fatal.h"
#include "front/requests/generalized.h"

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
            q->message = m->real;
            fetch(q);
            m->real = 0;
            m->queued = q;
        }
        if (!arrived(m->queued)) open++;
    }
    return open;
}

}  // namespace fermata::front
