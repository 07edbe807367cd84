#include "image/pump.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/invariant.h"
#include "base/page.h"
#include "base/sys.h"
#include "image/codec.h"
#include "image/hash.h"

namespace fermata::image {
namespace {

// Runs of this size are blocks of their own; smaller ones are gathered first.
constexpr uint64_t kStraight = 256 << 10;
// Blocks that are gathered or compressed, at most.
constexpr uint64_t kGather = 1 << 20;
constexpr uint64_t kStaging = 4 << 20;
// A step is copied first, by the kernel or (past the page cache) by us, and its checksum is made from the
// processor's cache. A gathered block for the page cache is a step, too: read, summed and written while it is
// there it took 1.33 ms for 2.75 MB, in blocks of 1 MiB 1.51 (2 MiB of second-level cache).
constexpr uint64_t kStep = 256 << 10;
constexpr size_t kStack = 256 << 10;

// Choosing between plain and compressed by measuring: plain first, then compressed, then whichever was
// faster.
enum Mode : int { trial_plain, trial_packed, plain, packed };
constexpr uint64_t kTrial = 48 << 20;

struct Fragment {
    uint64_t address;
    uint32_t length;
};

// One thread of the pump; lives in its work memory.
struct Worker {
    Pump* pump;
    uint32_t end;
    uint32_t alive;  // futex word, cleared by the kernel when the thread has ended
    uint32_t filled = 0, fragments = 0, staged = 0, pending = 0;
    Fragment fragment[kGather / kPage];
    struct {
        uint32_t block;
        uint32_t at;
    } waiting[kStaging / kPage + 1];
    char* apart;           // where to gather what is to be compressed or encrypted; null: in `staging`
    char* gather;          // where that is now
    uint64_t gather_size;  // of this block
    char* staging;
    char* through;  // what goes past the page cache: storage reads the same few pages again and again
    char* scratch;
    size_t scratch_size;
    unsigned number;  // of this thread

    void loop() noexcept;
    void straight(const char* data, uint64_t address, uint64_t length) noexcept;
    void collect(const char* data, uint64_t address, uint64_t length) noexcept;
    void close_gathered() noexcept;
    void emit(const char* data, uint32_t length, const Fragment& whole) noexcept;
    bool pack(const char* data, const Fragment* parts, uint32_t count, Block& block) noexcept;
    void stage(const Block& block, const Fragment* parts, uint32_t count) noexcept;
    // No block is larger than a step, nor more gathered or looked for zeros at a time: copies into the page
    // cache gain nothing from large writes, but from memory that is still in the processor's.
    bool in_steps() const noexcept { return !apart && !pump->large(); }
    void make_room() noexcept;
    void flush() noexcept;
    bool put(const char* data, uint64_t size, uint64_t at) noexcept;
    void seal(uint64_t at) noexcept;
    uint32_t new_block(const Block& block) noexcept;
    void new_extents(uint32_t block, const Fragment* parts, uint32_t count) noexcept;
    bool packing() noexcept;
};

constexpr size_t kWorkerSize = page_up(sizeof(Worker));
constexpr size_t kStagingSize = kStaging + kGather + kPage;

void Worker::loop() noexcept {
    PumpResult& r = *pump->result;
    while (!pump->failed()) {
        uint32_t i = r.next_piece.load(std::memory_order_relaxed);
        if (i >= end) break;
        if (!r.next_piece.compare_exchange_weak(i, i + 1)) continue;
        const Piece& piece = pump->pieces[i];
        if (i + 1 < end) ask_for_page(pump->pieces[i + 1].data);
        if (i + kPagesAhead < end) ask_for_address(pump->pieces[i + kPagesAhead].data);
        uint64_t zeros = 0;
        // Where processors are the limit, no more is looked at than is copied next: a look at one word of
        // every page of 4 MiB first takes nearly as long as the copy after it (docs/internals/images.md).
        const uint64_t most = in_steps() ? kStep : piece.length;
        // Runs of pages that are not zero.
        for (uint64_t from = 0; from < piece.length && !pump->failed();) {
            if (!piece.ground)
                while (from < piece.length && zero_page(piece.data + from)) from += kPage, zeros += kPage;
            uint64_t to = from;
            if (piece.ground)
                to = piece.length;
            else
                while (to < piece.length && to - from < most && !zero_page(piece.data + to)) to += kPage;
            if (to - from >= kStraight)
                straight(piece.data + from, piece.address + from, to - from);
            else if (to > from)
                collect(piece.data + from, piece.address + from, to - from);
            from = to;
        }
        r.zeros.fetch_add(zeros, std::memory_order_relaxed);
        r.raw.fetch_add(piece.length, std::memory_order_relaxed);
    }
    close_gathered();
    flush();
}

// The choice by measuring. All threads follow one word; the clock runs over all of them together.
bool Worker::packing() noexcept {
    if (pump->codec == Codec::none) return false;
    if (!pump->measure) return true;
    PumpResult& r = *pump->result;
    int mode = r.mode.load(std::memory_order_relaxed);
    if (mode >= plain) return mode == packed;
    uint64_t raw = r.raw.load(std::memory_order_relaxed);
    uint64_t since = r.mode_since_raw.load(std::memory_order_relaxed);
    if (raw >= since + kTrial) {
        uint64_t now = monotonic_ns();
        uint64_t speed = (raw - since) * 1000 / std::max<uint64_t>(1, now - r.mode_since_ns.load());
        if (mode == trial_plain) {
            if (r.mode.compare_exchange_strong(mode, trial_packed)) {
                r.plain_speed = speed;
                r.mode_since_raw = raw;
                r.mode_since_ns = now;
            }
        } else {
            r.mode.compare_exchange_strong(mode, speed > r.plain_speed.load() * 21 / 20 ? packed : plain);
        }
        mode = r.mode.load();
    }
    return mode == trial_packed || mode == packed;
}

void Worker::straight(const char* data, uint64_t address, uint64_t length) noexcept {
    uint64_t most =
        std::clamp(pump->largest_block, kStraight, packing() || pump->key ? kGather : kLargestBlock);
    while (length > 0) {
        uint64_t n = std::min(length, most);
        if (n < kStraight) return collect(data, address, n);
        Fragment whole{address, static_cast<uint32_t>(n)};
        emit(data, static_cast<uint32_t>(n), whole);
        data += n;
        address += n;
        length -= n;
    }
}

void Worker::collect(const char* data, uint64_t address, uint64_t length) noexcept {
    while (length > 0) {
        if (!filled) {
            make_room();
            gather = apart ? apart : staging + page_up(staged);
            gather_size = in_steps() ? kStep : kGather;
        }
        auto n = static_cast<uint32_t>(std::min(length, gather_size - filled));
        std::memcpy(gather + filled, data, n);
        filled += n;
        fragment[fragments++] = {address, n};
        if (filled == gather_size) close_gathered();
        data += n;
        address += n;
        length -= n;
    }
}

void Worker::close_gathered() noexcept {
    if (!filled) return;
    Block block{0, filled, filled, 0, Codec::none, {}, {}};
    if (apart) make_room();
    if (!packing() || !pack(gather, fragment, fragments, block)) {
        staged = static_cast<uint32_t>(page_up(staged));
        if (apart) std::memcpy(staging + staged, gather, filled);
        block.offset = staged;
        block.checksum = Hash::of(staging + staged, filled);
        staged += filled;
        stage(block, fragment, fragments);
    }
    filled = fragments = 0;
}

uint32_t Worker::new_block(const Block& block) noexcept {
    uint32_t id = pump->result->blocks.fetch_add(1);
    if (id >= pump->max_blocks) {
        pump->fail(EOVERFLOW, "count blocks of", 0);
        return 0;
    }
    pump->blocks[id] = block;
    return id;
}

void Worker::new_extents(uint32_t block, const Fragment* parts, uint32_t count) noexcept {
    uint64_t first = pump->result->extents.fetch_add(count);
    if (first + count > pump->max_extents) return pump->fail(EOVERFLOW, "count extents of", 0);
    uint32_t skip = 0;
    for (uint32_t i = 0; i < count; ++i) {
        pump->extents[first + i] = {parts[i].address, parts[i].length, block, skip, 0};
        skip += parts[i].length;
    }
    pump->result->content.fetch_add(skip, std::memory_order_relaxed);
}

// Makes room in the staging buffer for one more block of kGather bytes. Nothing is gathered in there.
void Worker::make_room() noexcept {
    if (staged && (in_steps() || page_up(staged) + kGather > kStaging || pending == std::size(waiting)))
        flush();
}

void Worker::stage(const Block& block, const Fragment* parts, uint32_t count) noexcept {
    uint32_t id = new_block(block);
    waiting[pending++] = {id, static_cast<uint32_t>(block.offset)};
    new_extents(id, parts, count);
}

// Into the staging buffer, smaller; false when it would not become smaller.
bool Worker::pack(const char* data, const Fragment* parts, uint32_t count, Block& block) noexcept {
    uint64_t at = (staged + 63) & ~63u;
    // Not for a percent: a plain block can be mapped and is read faster.
    size_t size = encode(pump->codec, pump->level, data, block.length, staging + at,
                         block.length - block.length / 32, scratch, scratch_size);
    if (size == 0) return false;
    block.codec = pump->codec;
    block.stored = static_cast<uint32_t>(size);
    block.offset = at;
    block.checksum = Hash::of(data, block.length);
    staged = static_cast<uint32_t>(at + size);
    stage(block, parts, count);
    return true;
}

void Worker::emit(const char* data, uint32_t length, const Fragment& whole) noexcept {
    PumpResult& r = *pump->result;
    Block block{0, length, length, 0, Codec::none, {}, {}};
    if (length <= kGather && packing()) {
        make_room();
        if (pack(data, &whole, 1, block)) return;
    }
    if (pump->key) {
        make_room();
        staged = static_cast<uint32_t>(page_up(staged));
        std::memcpy(staging + staged, data, length);
        block.offset = staged;
        block.checksum = Hash::of(staging + staged, length);
        staged += length;
        return stage(block, &whole, 1);
    }
    block.offset = r.at.fetch_add(length);
    const bool direct = pump->large();
    Hash hash;
    for (uint64_t at = 0; at < length; at += kStep) {
        uint64_t n = std::min<uint64_t>(kStep, length - at);
        const char* step = data + at;
        if (direct)
            step = static_cast<const char*>(std::memcpy(through + at, step, n));
        else if (!put(step, n, block.offset + at))
            return;
        hash.add(step, n);
    }
    if (direct && !put(through, length, block.offset)) return;
    block.checksum = hash.sum();
    new_extents(new_block(block), &whole, 1);
}

void Worker::flush() noexcept {
    if (!staged) return;
    uint64_t size = page_up(staged);
    std::memset(staging + staged, 0, size - staged);
    uint64_t at = pump->result->at.fetch_add(size);
    if (pump->key) seal(at);
    if (put(staging, size, at))
        for (uint32_t i = 0; i < pending; ++i) pump->blocks[waiting[i].block].offset = at + waiting[i].at;
    staged = pending = 0;
}

bool Worker::put(const char* data, uint64_t size, uint64_t at) noexcept {
    return pump->put(number, data, size, at);
}

// Encrypts what is staged for `at`, in place: now it is known where it will lie. Nothing of the program's
// stays between the blocks either.
void Worker::seal(uint64_t at) noexcept {
    uint32_t last = 0;
    for (uint32_t i = 0; i < pending; ++i) {
        char* data = staging + waiting[i].at;
        Block& block = pump->blocks[waiting[i].block];
        std::memset(staging + last, 0, waiting[i].at - last);
        block.offset = at + waiting[i].at;
        block.tag = pump->key.seal(data, data, block);
        last = waiting[i].at + block.stored;
    }
}

// A thread that shares everything with its maker, also the thread pointer: libc knows nothing of it, which is
// what a forked child needs. `top` is the end of its stack.
long start_thread(char* top, void (*body)(void*), void* argument, uint32_t* alive) {
    constexpr long kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                            CLONE_CHILD_CLEARTID;
    auto* stack = reinterpret_cast<void**>(reinterpret_cast<uint64_t>(top) & ~uint64_t{15});
    *--stack = argument;
    *--stack = reinterpret_cast<void*>(body);
    long result;
    register uint32_t* child_tid asm("r10") = alive;
    register long tls asm("r8") = 0;
    asm volatile(
        "syscall\n"
        "test %%rax, %%rax\n"
        "jnz 1f\n"
        "xor %%ebp, %%ebp\n"
        "pop %%rax\n"
        "pop %%rdi\n"
        "call *%%rax\n"
        "mov %[exit], %%eax\n"
        "xor %%edi, %%edi\n"
        "syscall\n"
        "1:\n"
        : "=a"(result)
        : "a"(SYS_clone), "D"(kFlags), "S"(stack), "d"(0), "r"(child_tid), "r"(tls), [exit] "i"(SYS_exit)
        : "rcx", "r11", "memory");
    return result;
}

// The last image's work memory, for the next one: new pages cost more than a small increment's writing. The
// kernel may take them back when memory is short.
class Spare {
  public:
    char* take(size_t size, size_t& got) {
        std::lock_guard lock(mutex_);
        if (size_ >= size) {
            got = std::exchange(size_, 0);
            return std::exchange(memory_, nullptr);
        }
        void* memory =
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) fail_errno("cannot get {} KiB to write an image", size >> 10);
        got = size;
        return static_cast<char*>(memory);
    }
    void give(char* memory, size_t size) {
        std::lock_guard lock(mutex_);
        if (size > size_) std::swap(memory, memory_), std::swap(size, size_);
        if (memory_ != nullptr) ::madvise(memory_, size_, MADV_FREE);
        if (memory) ::munmap(memory, size);
    }

  private:
    std::mutex mutex_;
    char* memory_ = nullptr;
    size_t size_ = 0;
};

Spare& spare() {
    static auto* one = new Spare;  // for ever: pumps may outlive what a process destroys at its end
    return *one;
}

}  // namespace

Pump::~Pump() {
    if (arena) ::munmap(arena, arena_size);
    if (work) spare().give(work, work_size);
}

void Pump::allocate() {
    always(!arena && !work, "an image whose memory is made twice");
    always(sink && threads > 0, "an image that nobody writes, or nowhere");
    for (const Piece& piece : pieces)
        always(piece.length > 0 && piece.length % kPage == 0 && piece.length <= kLargestBlock,
               "a piece of memory that fits no block");
    uint64_t pages = 0;
    for (const Piece& piece : pieces) pages += piece.length / kPage;
    // A straight block has kStraight bytes at least, a gathered one is full (kStep or kGather) except each
    // thread's last of each run().
    static_assert(kStraight <= kStep && kStep <= kGather);
    max_blocks =
        static_cast<uint32_t>(kept.blocks.size() + pages / (kStraight / kPage) + size_t{2} * threads + 2);
    max_extents = kept.extents.size() + pages + pages / (kStep / kPage) + size_t{2} * threads + 2;
    auto place = [this](size_t size) {
        size_t at = arena_size;
        arena_size = page_up(arena_size + size);
        return at;
    };
    size_t at_result = place(sizeof(PumpResult)), at_blocks = place(max_blocks * sizeof(Block)),
           at_extents = place(max_extents * sizeof(Extent));
    arena = ::mmap(nullptr, arena_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (arena == MAP_FAILED) {
        arena = nullptr;
        fail_errno("cannot get {} KiB for the index of an image", arena_size >> 10);
    }
    auto* base = static_cast<char*>(arena);
    result = new (base + at_result) PumpResult{};
    blocks = reinterpret_cast<Block*>(base + at_blocks);
    extents = reinterpret_cast<Extent*>(base + at_extents);
    always(kept.blocks.size() <= max_blocks && kept.extents.size() <= max_extents,
           "more is kept of earlier images than was counted");
    for (const Block& block : kept.blocks) blocks[result->blocks++] = block;
    for (const Extent& extent : kept.extents) extents[result->extents++] = extent;
    result->at = kPage;

    size_t scratch = page_up(encode_scratch(codec, level, kGather));
    size_t apart = codec == Codec::none && !key ? 0 : kGather;
    work_each = kWorkerSize + kStack + apart + kStagingSize + kLargestBlock + scratch;
    const size_t view = work_each;
    work_each += sink->space();
    work = spare().take(work_each * threads, work_size);
    for (unsigned i = 0; i < threads; ++i) {
        char* at = work + i * work_each;
        auto* worker = new (at) Worker;
        worker->pump = this;
        worker->apart = apart ? at + kWorkerSize + kStack : nullptr;
        worker->staging = at + kWorkerSize + kStack + apart;
        worker->through = worker->staging + kStagingSize;
        worker->scratch = worker->through + kLargestBlock;
        worker->scratch_size = scratch;
        worker->number = i;
    }
    sink->prepare(&result->sink, threads, work + view, work_each);
}

void Pump::run(uint32_t end) noexcept {
    if (measure && !result->mode_since_ns) result->mode_since_ns = monotonic_ns();
    auto worker = [this](unsigned i) { return reinterpret_cast<Worker*>(work + i * work_each); };
    unsigned helpers = std::min<unsigned>(threads, end > result->next_piece ? end - result->next_piece : 0);
#ifdef __SANITIZE_ADDRESS__
    helpers = 1;  // it keeps state per thread of libc
#endif
    // No handler of anybody's may run on threads that libc does not know.
    sigset_t all, before;
    sigfillset(&all);
    sys(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, 8);
    sink->enter();
    unsigned started = 1;
    for (unsigned i = 1; i < helpers; ++i) {
        Worker* w = worker(i);
        w->end = end;
        w->alive = 1;
        auto body = [](void* self) { static_cast<Worker*>(self)->loop(); };
        if (start_thread(work + i * work_each + kWorkerSize + kStack, body, w, &w->alive) < 0) break;
        ++started;
    }
    worker(0)->end = end;
    worker(0)->loop();
    for (unsigned i = 1; i < started; ++i)
        while (uint32_t value = __atomic_load_n(&worker(i)->alive, __ATOMIC_ACQUIRE))
            sys(SYS_futex, &worker(i)->alive, FUTEX_WAIT, value, nullptr);
    sink->leave();
    sys(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, 8);
}

void Pump::fail(int code, const char* what, uint64_t at) noexcept {
    int none = 0;
    if (!result->error.compare_exchange_strong(none, code)) return;
    result->error_what = what;
    result->error_at = at;
}

bool Pump::put(unsigned thread, const void* data, uint64_t size, uint64_t at) noexcept {
    Sink::Failure failure = sink->put(thread, data, size, at);
    if (failure) fail(failure.code, failure.what, failure.at);
    return !failure;
}

}  // namespace fermata::image
