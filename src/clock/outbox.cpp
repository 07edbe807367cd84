#include "clock/outbox.h"

#include <cstring>

namespace fermata::clock {

void Outbox::put(Arena& arena, const Writer& message) {
    uint32_t size = static_cast<uint32_t>(message.size());
    if (!last_ || sizeof(last_->bytes) - last_->tail < sizeof size + size) {
        auto* chunk = arena.make<Chunk>();
        (last_ ? last_->next : first_) = chunk;
        last_ = chunk;
    }
    memcpy(last_->bytes + last_->tail, &size, sizeof size);
    memcpy(last_->bytes + last_->tail + sizeof size, message.bytes(), size);
    last_->tail += sizeof size + size;
}

size_t Outbox::take(Arena& arena, void* bytes, size_t capacity) {
    while (Chunk* chunk = first_) {
        if (chunk->head == chunk->tail) {
            if (!chunk->next) {  // keep the last one
                chunk->head = chunk->tail = 0;
                return 0;
            }
            first_ = chunk->next;
            arena.drop(chunk);
            continue;
        }
        uint32_t size;
        memcpy(&size, chunk->bytes + chunk->head, sizeof size);
        if (size > capacity) return 0;
        memcpy(bytes, chunk->bytes + chunk->head + sizeof size, size);
        chunk->head += sizeof size + size;
        return size;
    }
    return 0;
}

void Outbox::clear(Arena& arena) {
    while (Chunk* chunk = first_) {
        first_ = chunk->next;
        arena.drop(chunk);
    }
    last_ = nullptr;
}

}  // namespace fermata::clock
