// Messages of a rank that the agent has not fetched yet, in order. Under the clock's lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "clock/arena.h"
#include "clock/messages.h"

namespace fermata::clock {

class Outbox {
  public:
    void put(Arena& arena, const Writer& message);
    // Copies the oldest one, and forgets it; its size. 0: there is none, or it is longer than `capacity`.
    size_t take(Arena& arena, void* bytes, size_t capacity);
    void clear(Arena& arena);

  private:
    // Records of a length word and that many bytes, never over a chunk's end.
    struct Chunk {
        Chunk* next;
        uint32_t head, tail;  // of what is filled and not fetched
        uint8_t bytes[2 * kMaxMessage - 16];
    };
    static_assert(sizeof(Chunk) == 2 * kMaxMessage, "a power of two, as the arena gives it");

    Chunk* first_ = nullptr;
    Chunk* last_ = nullptr;
};

}  // namespace fermata::clock
