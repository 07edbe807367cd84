// Children of the program that have ended before it has waited for them. A later process cannot hear from the
// kernel how they have: the lower half notes them, in upper memory, while all threads stand, and in the
// process that comes next the front's wait4 and waitid answer from here. Without that they would say ECHILD,
// which some callers take for success (Python's subprocess: exit code 0).
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdint>

namespace fermata::split {

struct EndedChild {
    enum State : uint32_t {
        kFree,
        kNoted,  // the kernel of this process knows it still
        kWaits,  // to be asked for here
        kTaken,  // for the moments in which somebody reads it
    };
    uint32_t state;      // by the functions below
    int32_t pid, group;  // as the program knows them
    int32_t real;        // the kernel's number when it was noted
    int32_t code;        // CLD_EXITED, CLD_KILLED or CLD_DUMPED
    int32_t status;      // exit status or signal
    uint32_t user;       // real user
    rusage usage;
};

// Untouched parts cost no memory.
struct EndedChildren {
    static constexpr uint32_t kMost = 256;
    // How many wait to be asked for: 0 almost always.
    uint32_t waiting;
    // The process whose children they are (the kernel's number): a child of it has this memory, too.
    int32_t process;
    EndedChild child[kMost];

    bool any() const noexcept {
        return __builtin_expect(__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) != 0, 0);
    }
};

// As wait4 gives it.
inline int wait_status(const EndedChild& child) noexcept {
    if (child.code == CLD_EXITED) return (child.status & 0xff) << 8;
    return child.status | (child.code == CLD_DUMPED ? 0x80 : 0);
}

// Whether waitid's words mean it. `own_group`: of the process that asks.
inline bool is_meant(const EndedChild& child, idtype_t type, int id) noexcept {
    return type == P_ALL || (type == P_PID && child.pid == id) || (type == P_PGID && child.group == id);
}

// Calls `read` with the first one that waits and is meant, which is asked for with that, unless it shall
// stay (WNOWAIT). False: there is none. Signal handlers, too; no TLS, no libc.
template <class Read>
bool ask_ended(EndedChildren& all, idtype_t type, int id, bool stays, Read read) noexcept {
    for (EndedChild& child : all.child) {
        uint32_t state = EndedChild::kWaits;
        if (__atomic_load_n(&child.state, __ATOMIC_ACQUIRE) != state || !is_meant(child, type, id)) continue;
        if (!__atomic_compare_exchange_n(&child.state, &state, EndedChild::kTaken, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        read(child);
        __atomic_store_n(&child.state, stays ? EndedChild::kWaits : EndedChild::kFree, __ATOMIC_RELEASE);
        if (!stays) __atomic_fetch_sub(&all.waiting, 1, __ATOMIC_ACQ_REL);
        return true;
    }
    return false;
}

}  // namespace fermata::split
