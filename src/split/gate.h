// The gate: the few instructions that cross from one half to the other.
//
// Order matters for signal handlers: `half` says lower before the thread pointer changes (if it does), and
// upper only after it is back. Functions that cross are compiled without stack protector (the canary lives in
// TLS) and must not keep a TLS address over the crossing.
#pragma once

#include "split/bridge.h"

namespace fermata::split {

// Valid in a thread that has a record (see known_thread).
inline ThreadRecord* this_thread() {
    ThreadRecord* record;
    asm volatile("movq %%gs:%c1, %0" : "=r"(record) : "i"(kRecordInTcb));
    return record;
}

inline uint64_t read_fs() {
    uint64_t value;
    asm volatile("rdfsbase %0" : "=r"(value));
    return value;
}
inline void write_fs(uint64_t value) { asm volatile("wrfsbase %0" ::"r"(value) : "memory"); }
inline uint64_t read_gs() {
    uint64_t value;
    asm volatile("rdgsbase %0" : "=r"(value));
    return value;
}
inline void write_gs(uint64_t value) { asm volatile("wrgsbase %0" ::"r"(value) : "memory"); }

// Is a word zero that others write? One instruction, where a volatile read would be two.
__attribute__((always_inline)) inline bool is_zero(const volatile uint32_t& word) {
    bool zero;
    asm volatile("cmpl $0, %1" : "=@ccz"(zero) : "m"(word));
    return zero;
}
__attribute__((always_inline)) inline bool is_zero(const volatile uint64_t& word) {
    bool zero;
    asm volatile("cmpq $0, %1" : "=@ccz"(zero) : "m"(word));
    return zero;
}

// The word for the record in the control block at `thread_pointer`.
inline ThreadRecord*& record_at(uint64_t thread_pointer) {
    return *reinterpret_cast<ThreadRecord**>(thread_pointer + kRecordInTcb);
}
// The calling thread is the one of this record, whose lower side is known.
inline void be_known_as(ThreadRecord* record) {
    record_at(record->lower_fs) = record;
    write_gs(record->lower_fs);
}

// A new kernel thread inherits its parent's GS base: the record is this thread's own only if it names this
// thread's FS base (of either half; the parent may be in the lower half while its child runs here). A base of
// 0 means nobody ever set it; threads of the lower half have no record. Any context.
inline ThreadRecord* known_thread() {
    uint64_t base = read_gs();
    if (__builtin_expect(base == 0, 0)) return nullptr;
    ThreadRecord* record = record_at(base);
    if (__builtin_expect(record == nullptr, 0)) return nullptr;
    uint64_t fs = read_fs();
    if (__builtin_expect(record->upper_fs != fs && record->lower_fs != fs && record->fs_below != fs, 0))
        return nullptr;
    return record;
}

// The same for code of the upper half only, where GS is never 0 (the front points threads without a record at
// a record that is nobody's) and the thread pointer stands at fs:0 (psABI): reading the two base registers
// costs ten times as much.
inline ThreadRecord* calling_thread() {
    ThreadRecord* record = this_thread();
    uint64_t fs;
    asm volatile("movq %%fs:0, %0" : "=r"(fs));
    if (__builtin_expect(record->upper_fs != fs && record->lower_fs != fs, 0)) return nullptr;
    return record;
}

// Where a thread is, in one word: `half`, `mode` and `in_mpi`. A thread in the lower half within one MPI call
// says kInLibrary, or that in a mode of its own.
using Place = volatile uint64_t __attribute__((may_alias));
inline constexpr uint64_t kInProgram = 0;
inline constexpr uint64_t kInLibrary = static_cast<uint64_t>(Half::lower) | uint64_t{1} << 32;
constexpr uint64_t in_library(uint16_t mode) { return kInLibrary | uint64_t{mode} << 16; }
static_assert(offsetof(ThreadRecord, mode) == offsetof(ThreadRecord, half) + 2);
inline Place& place_of(ThreadRecord* record) {
    return *reinterpret_cast<Place*>(reinterpret_cast<char*>(record) + offsetof(ThreadRecord, half));
}

// Crossing. The agent's own record says `lower` for ever, so that upper code it runs calls straight through.
class Crossing {
  public:
    __attribute__((always_inline)) explicit Crossing(ThreadRecord* record) : record_(record) {
        entered_ = record->half == Half::upper;
        if (__builtin_expect(entered_, 1)) {
            record->half = Half::lower;
            asm volatile("" ::: "memory");
            if (__builtin_expect(record->fs_below != 0, 0)) write_fs(record->fs_below);
        }
    }
    __attribute__((always_inline)) ~Crossing() {
        if (__builtin_expect(entered_, 1)) {
            // Looked at anew: it may have become necessary meanwhile.
            if (__builtin_expect(record_->fs_below != 0, 0)) write_fs(record_->upper_fs);
            asm volatile("" ::: "memory");
            record_->half = Half::upper;
        }
    }
    Crossing(const Crossing&) = delete;
    Crossing& operator=(const Crossing&) = delete;

  private:
    ThreadRecord* record_;
    bool entered_;
};

}  // namespace fermata::split
