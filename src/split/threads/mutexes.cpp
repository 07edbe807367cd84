#include "split/threads/mutexes.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "split/address/window.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"

namespace fermata::split::threads {
namespace {

constexpr uint64_t kPage = 4096;
// Reading runs at several GB/s: at most some tens of milliseconds.
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

struct Area {
    uint64_t begin, end;
};

// Writable mappings of the upper half, the small ones first.
std::vector<Area> writable_areas() {
    std::vector<Area> areas;
    std::FILE* maps = std::fopen("/proc/self/maps", "re");
    if (maps == nullptr) return areas;
    char line[4400];
    while (std::fgets(line, sizeof line, maps) != nullptr) {
        unsigned long begin, end;
        char permissions[8];
        if (std::sscanf(line, "%lx-%lx %7s", &begin, &end, permissions) != 3) continue;
        if (permissions[0] != 'r' || permissions[1] != 'w') continue;
        if (is_split() && !upper_range({begin, end})) continue;
        if (std::strstr(line, "[v") != nullptr) continue;  // vvar, vdso
        areas.push_back({begin, end});
    }
    std::fclose(maps);
    std::sort(areas.begin(), areas.end(),
              [](const Area& a, const Area& b) { return a.end - a.begin < b.end - b.begin; });
    return areas;
}

struct Owner {
    int32_t tid;
    int32_t record;
};

void search_page(uint64_t page, const std::vector<Owner>& owners, int32_t low, int32_t high) {
    ThreadTable& all = *table();
    const auto* words = reinterpret_cast<const uint64_t*>(page);
    // `owner` and `users` are one aligned word, the second of five.
    for (uint64_t i = 0; i < kPage / 8; ++i) {
        auto owner = static_cast<int32_t>(words[i]);
        if (owner < low || owner > high) continue;
        auto known =
            std::find_if(owners.begin(), owners.end(), [&](const Owner& o) { return o.tid == owner; });
        if (known == owners.end()) continue;
        uint64_t address = page + i * 8 - 8;
        Mutex mutex;
        // Copied by the kernel: it may reach over the page's edge, where nothing may be mapped.
        iovec to = {&mutex, sizeof mutex}, from = {reinterpret_cast<void*>(address), sizeof mutex};
        if (process_vm_readv(raw::getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(sizeof mutex))
            continue;
        if (!is_held_mutex(mutex)) continue;
        if (all.held_count >= kMaxHeldMutexes) return;
        all.held[all.held_count++] = {address, known->record, (mutex.kind & (kRobust | kInherit)) != 0};
    }
}

}  // namespace

void find_held_mutexes() {
    ThreadTable& all = *table();
    all.held_count = 0;
    std::vector<Owner> owners;
    for (uint32_t i = 0; i < all.high_water; ++i)
        if (all.record[i].run == Run::stopped) owners.push_back({all.record[i].tid, static_cast<int32_t>(i)});
    if (owners.empty()) return;
    auto [low, high] = std::minmax_element(owners.begin(), owners.end(),
                                           [](const Owner& a, const Owner& b) { return a.tid < b.tid; });
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap < 0) return;
    constexpr uint64_t kPresent = 1ull << 63;
    uint64_t searched = 0;
    std::vector<uint64_t> entries(4096);
    for (const Area& area : writable_areas()) {
        for (uint64_t at = area.begin; at < area.end && searched < kMostSearched;) {
            uint64_t count = std::min<uint64_t>(entries.size(), (area.end - at) / kPage);
            long got = raw::call(SYS_pread64, pagemap, raw::word(entries.data()),
                                 static_cast<long>(count * 8), static_cast<long>(at / kPage * 8));
            if (got <= 0) break;
            for (long i = 0; i < got / 8; ++i) {
                if ((entries[static_cast<size_t>(i)] & kPresent) == 0) continue;
                search_page(at + static_cast<uint64_t>(i) * kPage, owners, low->tid, high->tid);
                searched += kPage;
            }
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
