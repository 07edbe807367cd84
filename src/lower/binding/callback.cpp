// Compiled without stack protector: the thread pointer changes inside call_upper, and the canary lives in
// TLS.
#include "lower/binding/callback.h"

#include <sys/mman.h>

#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>

#include "base/page.h"
#include "lower/binding/binding.h"
#include "split/gate.h"

namespace fermata::lower {

volatile uint32_t g_yield = 0;
int g_program = -1;

namespace {

constexpr size_t kSlot = 32;
constexpr size_t kSlots = kPage / kSlot;
// Released thunks that stay valid before the first of them is used again.
constexpr size_t kQuarantine = kSlots / 2;

struct Pool {
    std::mutex lock;
    OpRecord* oldest = nullptr;
    OpRecord* newest = nullptr;
    size_t free = 0;
    std::unordered_map<uint64_t, OpRecord*> by_handle;
};

Pool& pool() {
    static Pool instance;
    return instance;
}

void put_back(Pool& p, OpRecord* record) {
    record->next = nullptr;
    if (p.newest != nullptr) p.newest->next = record;
    if (p.oldest == nullptr) p.oldest = record;
    p.newest = record;
    ++p.free;
}

// movabs r8, record; movabs rax, handler; jmp rax
void write_thunk(unsigned char* at, const OpRecord* record, void* handler) {
    const unsigned char code[] = {0x49, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0,    0x48,
                                  0xb8, 0,    0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    static_assert(sizeof code <= kSlot);
    std::memset(at, 0xcc, kSlot);
    std::memcpy(at, code, sizeof code);
    std::memcpy(at + 2, &record, 8);
    std::memcpy(at + 12, &handler, 8);
}

bool grow(Pool& p, void* handler) {
    void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    auto* records = new (std::nothrow) OpRecord[kSlots]();
    if (records == nullptr) {
        munmap(page, kPage);
        return false;
    }
    for (size_t i = 0; i < kSlots; ++i) {
        auto* at = static_cast<unsigned char*>(page) + i * kSlot;
        write_thunk(at, &records[i], handler);
        records[i].thunk = at;
    }
    if (mprotect(page, kPage, PROT_READ | PROT_EXEC) != 0) {  // a policy against new code (SELinux execmem)
        munmap(page, kPage);
        delete[] records;
        return false;
    }
    for (size_t i = 0; i < kSlots; ++i) put_back(p, &records[i]);
    return true;
}

}  // namespace

OpRecord* op_acquire(void* handler, mpi::OpCallback fn, uint64_t cookie) {
    Pool& p = pool();
    std::lock_guard guard(p.lock);
    if (p.free <= kQuarantine && !grow(p, handler) && p.free == 0) return nullptr;
    OpRecord* record = p.oldest;
    p.oldest = record->next;
    if (p.oldest == nullptr) p.newest = nullptr;
    --p.free;
    record->fn = fn;
    record->cookie = cookie;
    record->next = nullptr;
    return record;
}

void op_bind(OpRecord* record, uint64_t real) {
    Pool& p = pool();
    std::lock_guard guard(p.lock);
    record->real = real;
    p.by_handle[real] = record;
}

OpRecord* op_find(uint64_t real) {
    Pool& p = pool();
    std::lock_guard guard(p.lock);
    auto it = p.by_handle.find(real);
    return it == p.by_handle.end() ? nullptr : it->second;
}

void op_release(OpRecord* record) {
    Pool& p = pool();
    std::lock_guard guard(p.lock);
    // The library may already have given the same handle to a newer op.
    auto it = p.by_handle.find(record->real);
    if (it != p.by_handle.end() && it->second == record) p.by_handle.erase(it);
    record->real = 0;
    put_back(p, record);
}

void call_upper(const OpRecord* record, void* in, void* inout, int64_t len, uint64_t real_type) {
    auto type = static_cast<mpi::RealDatatype>(real_type);
    // Without a gate (unit tests, the lower main before there is an upper half) there is one half only.
    split::ThreadRecord* thread = split::read_gs() == 0 ? nullptr : split::this_thread();
    if (thread == nullptr || thread->upper_fs == 0) {
        record->fn(record->cookie, in, inout, len, type);
        return;
    }
    if (thread->fs_below != 0) split::write_fs(thread->upper_fs);
    asm volatile("" ::: "memory");
    thread->half = split::Half::upper;
    record->fn(record->cookie, in, inout, len, type);
    thread->half = split::Half::lower;
    asm volatile("" ::: "memory");
    if (thread->fs_below != 0) split::write_fs(thread->fs_below);
}

}  // namespace fermata::lower
