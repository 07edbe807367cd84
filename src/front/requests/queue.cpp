#include "front/requests/queue.h"

#include "front/core/heap.h"

namespace fermata::front {
namespace {

bool matches(const QueuedMessage* m, uint64_t comm, int32_t source, int32_t tag) {
    return m->comm == comm && (source == kAny || m->source == source) && (tag == kAny || m->tag == tag);
}

}  // namespace

void MessageQueue::push(QueuedMessage* message) noexcept {
    message->next = nullptr;
    if (last_ != nullptr)
        last_->next = message;
    else
        first_ = message;
    last_ = message;
    size_++;
}

QueuedMessage* MessageQueue::find(uint64_t comm, int32_t source, int32_t tag) const noexcept {
    for (QueuedMessage* m = first_; m != nullptr; m = m->next)
        if (matches(m, comm, source, tag)) return m;
    return nullptr;
}

QueuedMessage* MessageQueue::take(uint64_t comm, int32_t source, int32_t tag) noexcept {
    QueuedMessage* before = nullptr;
    for (QueuedMessage* m = first_; m != nullptr; before = m, m = m->next) {
        if (!matches(m, comm, source, tag)) continue;
        (before != nullptr ? before->next : first_) = m->next;
        if (last_ == m) last_ = before;
        m->next = nullptr;
        size_--;
        return m;
    }
    return nullptr;
}

uint64_t MessageQueue::purge(uint64_t comm) noexcept {
    uint64_t dropped = 0;
    while (QueuedMessage* m = take(comm, kAny, kAny)) {
        destroy(m);
        dropped++;
    }
    return dropped;
}

QueuedMessage* MessageQueue::make(uint64_t comm, int32_t source, int32_t tag, int64_t bytes) noexcept {
    auto* m = static_cast<QueuedMessage*>(fm_calloc(sizeof(QueuedMessage)));
    m->comm = comm;
    m->source = source;
    m->tag = tag;
    m->bytes = bytes;
    return m;
}

void MessageQueue::allocate(QueuedMessage* m) noexcept {
    if (m->bytes > 0) m->data = static_cast<char*>(fm_alloc(static_cast<size_t>(m->bytes)));
}

void MessageQueue::destroy(QueuedMessage* message) noexcept {
    fm_free(message->data);
    fm_free(message);
}

}  // namespace fermata::front
