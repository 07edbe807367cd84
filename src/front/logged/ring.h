// The stream of a replicated rank on its way to the copy that follows: a ring in memory that both processes
// map, so that it outlives its writer. A record is there once all of its bytes are; one that is longer than
// the ring goes in pieces.
#pragma once

#include <cstddef>
#include <cstdint>

#include "replay/memory.h"

namespace fermata::front::logged {

class Ring {
  public:
    // In memory of its own, shared with whatever this process forks.
    static Ring* make(size_t bytes) noexcept;

    // Unmaps it here; another process that has it goes on.
    static void forget(Ring* ring) noexcept;
    // Gives back the memory of what was read: an image shall not hold it. Nobody writes meanwhile.
    void forget_what_was_read() noexcept;

    // ---- the leader's end

    // Puts in what there is room for; how much of it.
    size_t put(const uint8_t* bytes, size_t size) noexcept;

    // ---- the copy's end

    // Takes what is there into `next`; a whole record: its bytes, which the caller takes over.
    bool next(replay::Bytes* record) noexcept;
    // All whole records that are there, without taking them.
    template <typename F>
    void each(F&& visit) const noexcept {
        replay::Bytes all = begun_;
        uint64_t at = read();
        copy_out(at, written() - at, &all);
        for (size_t from = 0; from + sizeof(uint64_t) <= all.size();) {
            uint64_t size;
            __builtin_memcpy(&size, all.data() + from, sizeof size);
            if (all.size() - from - sizeof size < size) return;
            visit(all.data() + from + sizeof size, size);
            from += sizeof size + size;
        }
    }
    // One of both is gone.
    void close() noexcept { __atomic_store_n(&shared_->closed, 1, __ATOMIC_RELEASE); }
    bool is_closed() const noexcept { return __atomic_load_n(&shared_->closed, __ATOMIC_ACQUIRE) != 0; }

  private:
    struct Shared {
        alignas(64) volatile uint64_t written;
        alignas(64) volatile uint64_t read;
        alignas(64) volatile uint32_t closed;
        uint64_t size;
        alignas(64) uint8_t data[];
    };
    explicit Ring(Shared* shared) noexcept : shared_(shared) {}
    uint64_t written() const noexcept { return __atomic_load_n(&shared_->written, __ATOMIC_ACQUIRE); }
    uint64_t read() const noexcept { return __atomic_load_n(&shared_->read, __ATOMIC_ACQUIRE); }
    void copy_out(uint64_t at, uint64_t size, replay::Bytes* to) const noexcept;

    Shared* shared_;
    replay::Bytes begun_;  // taken, and not whole yet
};

}  // namespace fermata::front::logged
