// A way back out of a blocking call of the library: when all ranks get new lower halves, nobody waits for it
// to return.
//
//     if (escapable(record, [&] { rc = LOWER(Barrier)(comm); })) ... // it returned
//     else ...                                                     // another lower half is below: call again
//
// The stop signal may meet the thread anywhere in the library. The old process goes on there, or is thrown
// away; in the new one the thread comes out of mark_escape() a second time (split/threads/restart.cpp).
#pragma once

#include "split/bridge.h"

extern "C" int fermata_mark_escape(fermata::split::EscapePoint* point) noexcept
    __attribute__((returns_twice, visibility("hidden")));

namespace fermata::front::logged {

// True: `call` has returned. Nothing that `call` writes to may be a local of the caller that is used when it
// has not.
template <typename Call>
__attribute__((noinline)) bool escapable(split::ThreadRecord* record, const Call& call) noexcept {
    split::EscapePoint point;
    if (fermata_mark_escape(&point) != 0) return false;  // whoever brought it here has cleared the record
    record->escape = &point;
    asm volatile("" ::: "memory");
    call();
    asm volatile("" ::: "memory");
    record->escape = nullptr;
    return true;
}

}  // namespace fermata::front::logged
