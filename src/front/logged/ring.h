// The stream of a replicated rank on its way to the copy that follows: a ring in memory that both processes
// map, so that it outlives its writer. A record is there once all of its bytes are; one that is longer than
// the ring goes in pieces.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/stream_ring.h"
#include "replay/memory.h"

namespace fermata::front::logged {

class Ring {
  public:
    // In memory of its own, shared with whatever this process forks.
    static Ring* make() noexcept;
    // In the file that the descriptor has, which the node daemon maps, too; null: it cannot be mapped.
    static Ring* make_elsewhere(int descriptor) noexcept;
    // Takes its place in this process: another such file, on the copy's node. False: it cannot be mapped.
    bool move_to(int descriptor) noexcept;

    // Unmaps it here; another process that has it goes on.
    static void forget(Ring* ring) noexcept;
    // Gives back the memory of what was read: an image shall not hold it. Nobody writes meanwhile.
    void forget_what_was_read() noexcept;

    // ---- the leader's end

    // A copy on another node follows.
    bool is_elsewhere() const noexcept { return __atomic_load_n(&shared_->elsewhere, __ATOMIC_SEQ_CST) != 0; }
    // Bytes that the leader's death cannot take any more, of all that were put in.
    uint64_t arrived() const noexcept { return __atomic_load_n(&shared_->arrived, __ATOMIC_ACQUIRE); }
    uint64_t end() const noexcept { return written(); }
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
    // The copy takes nothing. One on another node has to be told first that it is none any more.
    void give_up() noexcept {
        if (is_elsewhere())
            __atomic_store_n(&shared_->given_up, 1, __ATOMIC_RELEASE);
        else
            close();
    }
    bool is_closed() const noexcept { return __atomic_load_n(&shared_->closed, __ATOMIC_ACQUIRE) != 0; }

  private:
    explicit Ring(StreamRing* shared) noexcept : shared_(shared) {}
    uint64_t written() const noexcept { return __atomic_load_n(&shared_->written, __ATOMIC_ACQUIRE); }
    uint64_t read() const noexcept { return __atomic_load_n(&shared_->read, __ATOMIC_ACQUIRE); }
    void copy_out(uint64_t at, uint64_t size, replay::Bytes* to) const noexcept;

    StreamRing* shared_;
    replay::Bytes begun_;  // taken, and not whole yet
};

}  // namespace fermata::front::logged
