// The gate: the few instructions that cross from one half to the other.
//
// Order matters for signal handlers: `half` says lower before the thread pointer changes, and upper only
// after it is back. Functions that cross are compiled without stack protector (the canary lives in TLS) and
// must not keep a TLS address over the crossing.
#pragma once

#include "split/bridge.h"

namespace fermata::split {

// Valid in a thread that has a record (see known_thread).
inline ThreadRecord* this_thread() {
    ThreadRecord* record;
    asm volatile("movq %%gs:0, %0" : "=r"(record));
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

// A new kernel thread inherits its parent's GS base: the record is this thread's own only if it names this
// thread's thread pointer (of either half; the parent may be in the lower half while its child runs here). A
// base of 0 means nobody ever set it. Any context.
inline ThreadRecord* known_thread() {
    uint64_t base = read_gs();
    if (__builtin_expect(base == 0, 0)) return nullptr;
    auto* record = reinterpret_cast<ThreadRecord*>(base);
    uint64_t fs = read_fs();
    if (__builtin_expect(record->upper_fs != fs && record->lower_fs != fs, 0)) return nullptr;
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

// Crossing. The agent's own record says `lower` for ever, so that upper code it runs calls straight through.
class Crossing {
  public:
    __attribute__((always_inline)) explicit Crossing(ThreadRecord* record) : record_(record) {
        entered_ = record->half == Half::upper;
        if (__builtin_expect(entered_, 1)) {
            record->half = Half::lower;
            asm volatile("" ::: "memory");
            write_fs(record->lower_fs);
        }
    }
    __attribute__((always_inline)) ~Crossing() {
        if (__builtin_expect(entered_, 1)) {
            write_fs(record_->upper_fs);
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
