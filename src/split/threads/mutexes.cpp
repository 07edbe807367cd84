#include "split/threads/mutexes.h"

#include <emmintrin.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/page.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"

namespace fermata::split::threads {
namespace {

// The job stands still meanwhile: with sixteen bytes at a time memory is the limit (8 GB/s a core seen), word
// by word the ranks of a node took half a second for what they take 0.1 s for now.
constexpr uint64_t kMostSearched = 256ull << 20;

// glibc's mutex on x86-64 (sysdeps/nptl/bits/struct_mutex.h), unchanged since 2.18.
struct Mutex {
    uint32_t lock;
    uint32_t count;
    int32_t owner;
    uint32_t users;
    int32_t kind;
    int16_t spins;
    int16_t elision;
    uint64_t previous, next;
};
static_assert(sizeof(Mutex) == sizeof(pthread_mutex_t));

constexpr int kRecursive = 1, kErrorCheck = 2, kRobust = 16, kInherit = 32;
constexpr int kTypeMask = 3;
constexpr int kKnownBits =
    3 | kRobust | kInherit | 64 /* protect */ | 128 /* shared */ | 256 | 512 /* elision */;

bool is_held_mutex(const Mutex& mutex) {
    if ((mutex.kind & ~kKnownBits) != 0) return false;
    bool in_lock_word = (mutex.kind & (kRobust | kInherit)) != 0;
    int type = mutex.kind & kTypeMask;
    if (in_lock_word) {
        if ((mutex.lock & FUTEX_TID_MASK) != static_cast<uint32_t>(mutex.owner)) return false;
    } else {
        if (type != kRecursive && type != kErrorCheck) return false;  // the others never look at the owner
        if (mutex.lock != 1 && mutex.lock != 2) return false;
        if (mutex.previous != 0 || mutex.next != 0) return false;
        if (type == kErrorCheck && mutex.count != 0) return false;
    }
    if (type == kRecursive && mutex.count == 0) return false;
    if (mutex.count > 100000) return false;
    return mutex.users >= 1 && mutex.users <= 100000;
}

bool earlier(const MutexOwner& a, const MutexOwner& b) { return a.tid < b.tid; }

// Is one of the eight words at `at` a number from `low` to `high` in its lower half? Nearly never.
bool near_an_owner(const void* at, __m128i low, __m128i span) {
    const auto* words = static_cast<const __m128i*>(at);
    const __m128i sign = _mm_set1_epi32(INT32_MIN);
    __m128i any = _mm_setzero_si128();
    for (int i = 0; i < 4; ++i) {
        // Unsigned: x - low <= high - low; SSE2 compares signed numbers only.
        __m128i above = _mm_xor_si128(_mm_sub_epi32(_mm_load_si128(words + i), low), sign);
        any = _mm_or_si128(any, _mm_cmpgt_epi32(span, above));
    }
    return (_mm_movemask_epi8(any) & 0x0f0f) != 0;
}

// Writes down the mutex whose second word lies at `word`, if it is a held one.
void look_at(uint64_t word, const std::vector<MutexOwner>& owners) {
    ThreadTable& all = *table();
    Mutex mutex;
    // Copied by the kernel: it may reach over the page's edge, where nothing may be mapped.
    iovec to = {&mutex, sizeof mutex}, from = {reinterpret_cast<void*>(word - 8), sizeof mutex};
    if (process_vm_readv(raw::getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(sizeof mutex)) return;
    auto known =
        std::find_if(owners.begin(), owners.end(), [&](const MutexOwner& o) { return o.tid == mutex.owner; });
    if (known == owners.end() || !is_held_mutex(mutex) || all.held_count >= kMaxHeldMutexes) return;
    all.held[all.held_count++] = {word - 8, known->record, (mutex.kind & (kRobust | kInherit)) != 0};
}

void search_page(uint64_t page, const std::vector<MutexOwner>& owners, int32_t low, int32_t high) {
    const auto* words = reinterpret_cast<const uint64_t*>(page);
    const __m128i first = _mm_set1_epi32(low);
    const __m128i span =
        _mm_set1_epi32(static_cast<int32_t>(static_cast<uint32_t>(high - low + 1) ^ 0x80000000u));
    // `owner` and `users` are one aligned word, the second of five.
    for (uint64_t i = 0; i < kPage / 8; i += 8) {
        if (!near_an_owner(words + i, first, span)) continue;
        for (uint64_t k = i; k < i + 8; ++k) {
            auto owner = static_cast<int32_t>(words[k]);
            if (owner >= low && owner <= high) look_at(page + k * 8, owners);
        }
    }
}

}  // namespace

void make_room_for_held_mutexes() {
    auto* held = reinterpret_cast<volatile char*>(table()->held);
    for (size_t at = 0; at < sizeof table()->held; at += kPage) held[at] = held[at];
    held[sizeof table()->held - 1] = held[sizeof table()->held - 1];
}

MutexSearch::MutexSearch(const std::vector<MutexArea>& areas, const std::vector<Range>& unchanged)
    : entries_(4096) {
    ThreadTable& all = *table();
    const std::vector<HeldMutex> last(all.held, all.held + std::min<size_t>(all.held_count, kMaxHeldMutexes));
    all.held_count = 0;
    for (uint32_t i = 0; i < all.high_water; ++i)
        if (all.record[i].run == Run::stopped)
            owners_.push_back({all.record[i].tid, static_cast<int32_t>(i)});
    if (owners_.empty()) return;
    for (const HeldMutex& one : last) {
        uint64_t word = one.address + 8;
        auto range = std::lower_bound(unchanged.begin(), unchanged.end(), word,
                                      [](const Range& r, uint64_t at) { return r.end() <= at; });
        if (range != unchanged.end() && range->begin() <= word) look_at(word, owners_);
    }
    for (const MutexArea& area : areas) {
        auto next = std::lower_bound(unchanged.begin(), unchanged.end(), area.range.begin(),
                                     [](const Range& range, uint64_t at) { return range.end() <= at; });
        std::vector<MutexArea>& parts = area.shared ? shared_ : own_;
        auto add = [&](uint64_t begin, uint64_t end) {
            if (begin < end) parts.push_back({{begin, end}, area.shared, area.resident});
        };
        uint64_t at = area.range.begin();
        for (; next != unchanged.end() && next->begin() < area.range.end(); ++next) {
            add(at, next->begin());
            at = next->end();
        }
        add(at, area.range.end());
    }
}

void MutexSearch::in_shared_memory() noexcept { search(shared_); }
void MutexSearch::in_own_memory() noexcept { search(own_); }

void MutexSearch::search(const std::vector<MutexArea>& areas) noexcept {
    if (areas.empty()) return;
    auto tids = std::minmax_element(owners_.begin(), owners_.end(), earlier);
    long pagemap = raw::call(SYS_openat, AT_FDCWD, raw::word("/proc/self/pagemap"), O_RDONLY | O_CLOEXEC);
    if (pagemap < 0) return;
    constexpr uint64_t kPresent = 1ull << 63;
    uint64_t searched = 0;
    auto look_into = [&](uint64_t page) {
        search_page(page, owners_, tids.first->tid, tids.second->tid);
        searched += kPage;
    };
    auto page_of = [&](size_t i) { return reinterpret_cast<const void*>(areas[i].range.begin()); };
    for (size_t i = 0; i < areas.size(); ++i) {
        const MutexArea& area = areas[i];
        if (i + 1 < areas.size()) ask_for_page(page_of(i + 1));
        if (i + kPagesAhead < areas.size()) ask_for_address(page_of(i + kPagesAhead));
        uint64_t at = area.range.begin();
        if (area.resident)
            for (; at < area.range.end() && searched < kMostSearched; at += kPage) look_into(at);
        while (at < area.range.end() && searched < kMostSearched) {
            uint64_t count = std::min<uint64_t>(entries_.size(), (area.range.end() - at) / kPage);
            long got = raw::call(SYS_pread64, pagemap, raw::word(entries_.data()),
                                 static_cast<long>(count * 8), static_cast<long>(at / kPage * 8));
            if (got <= 0) break;
            for (long i = 0; i < got / 8; ++i)
                if ((entries_[static_cast<size_t>(i)] & kPresent) != 0)
                    look_into(at + static_cast<uint64_t>(i) * kPage);
            at += static_cast<uint64_t>(got / 8) * kPage;
        }
        if (searched >= kMostSearched) break;
    }
    raw::call(SYS_close, pagemap);
}

void give_mutexes_to_new_ids() {
    ThreadTable& all = *table();
    for (uint32_t i = 0; i < all.held_count && i < kMaxHeldMutexes; ++i) {
        const HeldMutex& held = all.held[i];
        auto* mutex = reinterpret_cast<Mutex*>(held.address);
        int32_t old_tid = all.saved[held.record].old_tid;
        int32_t new_tid = all.record[held.record].tid;
        if (mutex->owner != old_tid) continue;
        mutex->owner = new_tid;
        if (held.lock_word != 0)
            mutex->lock = (mutex->lock & ~FUTEX_TID_MASK) | static_cast<uint32_t>(new_tid);
    }
}

}  // namespace fermata::split::threads
