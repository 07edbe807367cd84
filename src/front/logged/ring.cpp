#include "front/logged/ring.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <new>

#include "base/page.h"
#include "front/core/fatal.h"
#include "front/core/heap.h"
#include "front/core/sys.h"

namespace fermata::front::logged {
namespace {

constexpr size_t kBytes = sizeof(StreamRing) + kStreamRingBytes;

StreamRing* mapped(void* at, int flags, int descriptor) noexcept {
    const long made =
        sys(SYS_mmap, at, static_cast<long>(kBytes), PROT_READ | PROT_WRITE, flags, descriptor, 0);
    if (made < 0 && made > -4096) return nullptr;
    auto* shared = reinterpret_cast<StreamRing*>(made);
    shared->size = kStreamRingBytes;
    return shared;
}

}  // namespace

Ring* Ring::make() noexcept {
    StreamRing* shared = mapped(nullptr, MAP_SHARED | MAP_ANONYMOUS, -1);
    if (shared == nullptr) fatal_line("fermata: there is no memory for the stream of a replicated rank");
    return new (fm_alloc(sizeof(Ring))) Ring(shared);
}

Ring* Ring::make_elsewhere(int descriptor) noexcept {
    StreamRing* shared = mapped(nullptr, MAP_SHARED, descriptor);
    if (shared == nullptr) return nullptr;
    return new (fm_alloc(sizeof(Ring))) Ring(shared);
}

bool Ring::move_to(int descriptor) noexcept {
    return mapped(shared_, MAP_SHARED | MAP_FIXED, descriptor) != nullptr;
}

void Ring::forget(Ring* ring) noexcept {
    sys(SYS_munmap, ring->shared_, static_cast<long>(kBytes));
    ring->~Ring();
    fm_free(ring);
}

void Ring::forget_what_was_read() noexcept {
    const uint64_t size = shared_->size, at = read(), end = written(), begin = end % size;
    const uint64_t free = size - (end - at), first = std::min<uint64_t>(free, size - begin);
    const auto give_back = [this](uint64_t from, uint64_t bytes) {
        const auto base = reinterpret_cast<uint64_t>(shared_->data) + from;
        const uint64_t low = page_up(base), high = page_down(base + bytes);
        if (high > low) sys(SYS_madvise, low, high - low, MADV_REMOVE);
    };
    give_back(begin, first);
    give_back(0, free - first);
}

size_t Ring::put(const uint8_t* bytes, size_t size) noexcept {
    const uint64_t at = written();
    const uint64_t room = shared_->size - (at - read());
    const size_t taken = std::min<uint64_t>(size, room);
    const uint64_t begin = at % shared_->size, first = std::min<uint64_t>(taken, shared_->size - begin);
    __builtin_memcpy(shared_->data + begin, bytes, first);
    __builtin_memcpy(shared_->data, bytes + first, taken - first);
    __atomic_store_n(&shared_->written, at + taken, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&shared_->sleeps, __ATOMIC_SEQ_CST) != 0 &&
        __atomic_exchange_n(&shared_->sleeps, 0, __ATOMIC_SEQ_CST) != 0)
        sys(SYS_futex, &shared_->sleeps, FUTEX_WAKE, 1, 0, 0, 0);
    return taken;
}

void Ring::copy_out(uint64_t at, uint64_t size, replay::Bytes* to) const noexcept {
    const size_t end = to->size();
    to->resize(end + size);
    const uint64_t begin = at % shared_->size, first = std::min<uint64_t>(size, shared_->size - begin);
    __builtin_memcpy(to->data() + end, shared_->data + begin, first);
    __builtin_memcpy(to->data() + end + first, shared_->data, size - first);
}

bool Ring::next(replay::Bytes* record) noexcept {
    // No more than the record needs: what is behind it stays where it outlives both.
    const auto take = [this](uint64_t wanted) {
        const uint64_t at = read(), there = written() - at;
        const uint64_t taken = std::min<uint64_t>(wanted - std::min<uint64_t>(wanted, begun_.size()), there);
        if (taken == 0) return;
        copy_out(at, taken, &begun_);
        __atomic_store_n(&shared_->read, at + taken, __ATOMIC_RELEASE);
    };
    uint64_t size = 0;
    take(sizeof size);
    if (begun_.size() < sizeof size) return false;
    __builtin_memcpy(&size, begun_.data(), sizeof size);
    take(sizeof size + size);
    if (begun_.size() < sizeof size + size) return false;
    record->assign(begun_.begin() + sizeof size, begun_.end());
    begun_.clear();
    return true;
}

}  // namespace fermata::front::logged
