// Parts that the upper half's interposers share. Each interposer changes one thing and calls the next
// definition (libc's).
//
// Interposed is only what would show the split to the application: signals (a handler must not run with the
// lower half's thread pointer), waits that our stop signal would cut short, the name of the executable, the
// closing of descriptors that the application has not opened, ids of processes (front/identity), and random
// numbers, which a copy of a rank takes from the rank. Never malloc, mutexes or clocks.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "front/core/bridge.h"
#include "split/threads/raw.h"

#define FERMATA_INTERPOSE extern "C" __attribute__((visibility("default")))

namespace fermata::front::posix {

// A function of the next library in search order, looked up at its first use.
template <class F>
class Next;
template <class R, class... A>
class Next<R(A...)> {
  public:
    explicit constexpr Next(const char* name) : name_(name) {}
    R operator()(A... arguments) {
        auto* found = reinterpret_cast<R (*)(A...)>(found_.load(std::memory_order_relaxed));
        if (__builtin_expect(found == nullptr, 0)) {
            found = find();
            if (found == nullptr) std::abort();  // no libc without it
        }
        return found(arguments...);
    }
    // Before anybody needs it: dlsym in a signal handler, or in the child of a fork, might wait for a lock
    // that nobody gives back.
    R (*find())(A...) {
        void* found = dlsym(RTLD_NEXT, name_);
        found_.store(found, std::memory_order_relaxed);
        return reinterpret_cast<R (*)(A...)>(found);
    }

  private:
    const char* name_;
    std::atomic<void*> found_{nullptr};
};

// How many handlers of the application have run: an EINTR without one, while the process was stopped, is
// ours.
extern std::atomic<uint32_t> handlers_run;
// How many signals were held back (warden.h): their EINTR is ours, too.
extern std::atomic<uint32_t> signals_held;

}  // namespace fermata::front::posix
