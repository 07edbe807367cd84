// The front's table of ids (split/ids/table.h), and the questions that its interposers ask of it. Any
// context, signal handlers and children of a fork too: no TLS, no libc.
#pragma once

#include "front/core/sys.h"
#include "split/ids/table.h"

namespace fermata::front {

// In every image: what a number means to the program outlives the process.
inline constinit split::ids::Table ids{};

// UpperServices::raw_call (identity/raw_call.cpp).
extern "C" __attribute__((visibility("hidden"))) long fermata_raw_call(long number, long a, long b, long c,
                                                                       long d, long e, long f) noexcept;

inline bool ids_changed() noexcept { return __builtin_expect(ids.changed != 0, 0); }

inline int real_pid() noexcept { return static_cast<int>(sys(SYS_getpid)); }

// A process or thread that the kernel names, as the program knows it, and back; what is no number of one (0,
// -1, errors) stays.
inline int shown_id(int real) noexcept {
    return ids_changed() && real > 0 ? split::ids::shown_of(ids, real) : real;
}
inline int real_id(int shown) noexcept {
    return ids_changed() && shown > 0 ? split::ids::real_of(ids, shown) : shown;
}
// The kernel's 0 is one outside the pid namespace, and has a name of an earlier life like any other.
inline int shown_parent(int real) noexcept {
    return ids_changed() ? split::ids::shown_whole(ids, ids.parent, real) : real;
}
inline int shown_group(int real) noexcept {
    return ids_changed() && real >= 0 ? split::ids::shown_whole(ids, ids.group, real) : real;
}
inline int real_group(int shown) noexcept {
    return ids_changed() && shown > 0 ? split::ids::real_whole(ids, ids.group, shown) : shown;
}
inline int shown_session(int real) noexcept {
    return ids_changed() && real >= 0 ? split::ids::shown_whole(ids, ids.session, real) : real;
}
// As kill() and waitpid() take it: a process, or a group with a minus.
inline int real_target(int shown) noexcept { return shown < -1 ? -real_group(-shown) : real_id(shown); }
// As F_GETOWN gives it.
inline int shown_target(int real) noexcept { return real < -1 ? -shown_group(-real) : shown_id(real); }

}  // namespace fermata::front
