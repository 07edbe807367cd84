#include "front/core/heap.h"

#include <sys/mman.h>

#include "base/page.h"
#include "front/core/fatal.h"
#include "front/core/sys.h"

namespace fermata::front {
namespace {

// Each block is preceded by its class (or, for a mapping of its own, by its mapped size), so free needs no
// size.
struct Header {
    uint64_t size;   // bytes after the header that the class offers
    uint32_t cls;    // kLarge: own mapping
    uint32_t magic;  // catches a double free and foreign pointers
};
static_assert(sizeof(Header) == 16);
constexpr uint32_t kLive = 0x6c697665, kDead = 0x64656164;
constexpr uint32_t kLarge = 0xffffffff;

// Four classes per power of two keep the waste below 25 %. Offered sizes: 16, 32, 48, 64, 80, 96, 112, 128,
// 160, ...
constexpr size_t kLargest = size_t{64} * 1024;
constexpr size_t kChunk =
    size_t{1024} * 1024;  // one kernel mapping; small enough for tiny jobs, few for large ones
constexpr uint32_t kClasses = 48;
// Large blocks that were freed and stay mapped: those that come and go with each message of a log would cost
// the kernel a fault a page every time.
constexpr uint32_t kKept = 16;
constexpr size_t kKeptBytes = size_t{4} * 1024 * 1024;

struct FreeBlock {
    FreeBlock* next;
};

struct Heap {
    SpinLock lock;
    FreeBlock* free[kClasses];
    char* at;
    char* end;
    Header* kept[kKept];
    uint32_t kept_count;
    size_t kept_bytes;  // of their mappings
    HeapUse use;
};
constinit Heap heap{};

uint32_t class_of(size_t size) {
    if (size <= 128) return size == 0 ? 0 : static_cast<uint32_t>((size - 1) / 16);
    uint32_t log = 63 - static_cast<uint32_t>(__builtin_clzll(size - 1));  // 7 for 129..256
    return 8 + (log - 7) * 4 + static_cast<uint32_t>(((size - 1) >> (log - 2)) & 3);
}
size_t class_size(uint32_t cls) {
    if (cls < 8) return (size_t{cls} + 1) * 16;
    uint32_t log = 7 + (cls - 8) / 4;
    return (size_t{1} << log) + ((cls - 8) % 4 + 1) * (size_t{1} << (log - 2));
}
static_assert(kLargest == size_t{64} * 1024);

size_t mapped_size(const Header* large) { return large->size + sizeof(Header); }

// The kept block that fits best, if no more than a quarter of it is waste.
Header* take_kept(size_t mapped) {
    uint32_t best = kKept;
    for (uint32_t i = 0; i < heap.kept_count; i++) {
        const size_t there = mapped_size(heap.kept[i]);
        if (there < mapped || there > mapped + mapped / 3) continue;
        if (best == kKept || there < mapped_size(heap.kept[best])) best = i;
    }
    if (best == kKept) return nullptr;
    Header* header = heap.kept[best];
    heap.kept[best] = heap.kept[--heap.kept_count];
    heap.kept_bytes -= mapped_size(header);
    return header;
}

// False: it goes back to the kernel.
bool keep(Header* header) {
    if (heap.kept_count == kKept || heap.kept_bytes + mapped_size(header) > kKeptBytes) return false;
    heap.kept[heap.kept_count++] = header;
    heap.kept_bytes += mapped_size(header);
    return true;
}

}  // namespace

void SpinLock::slow() noexcept {
    for (;;) {
        for (int i = 0; i < 100; i++) {
            if (__atomic_load_n(&word_, __ATOMIC_RELAXED) == 0 &&
                __atomic_exchange_n(&word_, 1, __ATOMIC_ACQUIRE) == 0)
                return;
            cpu_pause();
        }
        yield_cpu();
    }
}

void* fm_map(size_t size) noexcept {
    long start = sys(SYS_mmap, 0, static_cast<long>(page_up(size)), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (failed(start)) fatal_line("fermata: out of memory in the MPI front: raise the memory limit");
    return reinterpret_cast<void*>(start);
}

void fm_unmap(void* start, size_t size) noexcept {
    sys(SYS_munmap, reinterpret_cast<long>(start), static_cast<long>(page_up(size)));
}

void* fm_alloc(size_t size) noexcept {
    if (__builtin_expect(size > kLargest, 0)) {
        if (size > (size_t{1} << 46)) fatal_line("fermata: absurd allocation in the MPI front: a bug");
        size_t mapped = page_up(size + sizeof(Header));
        {
            SpinGuard guard(heap.lock);
            if (Header* header = take_kept(mapped)) {
                header->magic = kLive;
                heap.use.allocated += mapped_size(header);
                heap.use.blocks++;
                return header + 1;
            }
        }
        auto* header = static_cast<Header*>(fm_map(mapped));
        *header = {mapped - sizeof(Header), kLarge, kLive};
        SpinGuard guard(heap.lock);
        heap.use.mapped += mapped;
        heap.use.allocated += mapped;
        heap.use.blocks++;
        return header + 1;
    }
    uint32_t cls = class_of(size);
    size_t offered = class_size(cls);
    SpinGuard guard(heap.lock);
    heap.use.allocated += offered + sizeof(Header);
    heap.use.blocks++;
    Header* header;
    if (FreeBlock* block = heap.free[cls]) {
        heap.free[cls] = block->next;
        header = reinterpret_cast<Header*>(block) - 1;
    } else {
        size_t need = offered + sizeof(Header);
        if (static_cast<size_t>(heap.end - heap.at) < need) {
            // The rest of the old chunk is given up: at most one block of the largest class per megabyte.
            heap.at = static_cast<char*>(fm_map(kChunk));
            heap.end = heap.at + kChunk;
            heap.use.mapped += kChunk;
        }
        header = reinterpret_cast<Header*>(heap.at);
        heap.at += need;
    }
    *header = {offered, cls, kLive};
    return header + 1;
}

void* fm_calloc(size_t size) noexcept {
    void* block = fm_alloc(size);
    __builtin_memset(block, 0, size);
    return block;
}

void fm_free(void* block) noexcept {
    if (block == nullptr) return;
    Header* header = static_cast<Header*>(block) - 1;
    if (header->magic != kLive) fatal_line("fermata: damaged or doubly freed block in the MPI front");
    header->magic = kDead;
    if (header->cls == kLarge) {
        const size_t mapped = mapped_size(header);
        {
            SpinGuard guard(heap.lock);
            heap.use.allocated -= mapped;
            heap.use.blocks--;
            if (keep(header)) return;
            heap.use.mapped -= mapped;
        }
        fm_unmap(header, mapped);
        return;
    }
    SpinGuard guard(heap.lock);
    heap.use.allocated -= header->size + sizeof(Header);
    heap.use.blocks--;
    auto* entry = static_cast<FreeBlock*>(block);
    entry->next = heap.free[header->cls];
    heap.free[header->cls] = entry;
}

void* fm_realloc(void* block, size_t size) noexcept {
    if (block == nullptr) return fm_alloc(size);
    Header* header = static_cast<Header*>(block) - 1;
    if (size <= header->size) return block;
    void* fresh = fm_alloc(size);
    __builtin_memcpy(fresh, block, header->size);
    fm_free(block);
    return fresh;
}

char* fm_strdup(const char* text) noexcept {
    size_t size = __builtin_strlen(text) + 1;
    auto* copy = static_cast<char*>(fm_alloc(size));
    __builtin_memcpy(copy, text, size);
    return copy;
}

HeapUse fm_heap_use() noexcept {
    SpinGuard guard(heap.lock);
    return heap.use;
}

}  // namespace fermata::front
