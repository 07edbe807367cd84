// A function that is called for the first time is looked up by glibc while the registers with its arguments
// wait in an area on the stack (_dl_runtime_resolve_xsave and _xsavec, sysdeps/x86_64/dl-trampoline.h); since
// 2.40 the same is done for a thread-local that is found by a descriptor (_dl_tlsdesc_dynamic_xsave and
// _xsavec), with another size, and tiles of AMX. The area is as large as the CPU asked for that the program
// was started on: on one with more registers xsave would overwrite the stack behind it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/page.h"
#include "base/range.h"
#include "split/threads/records.h"

namespace fermata::split::threads {

struct LazyBinding {
    Range taken;       // a thread about to execute one of these has the area and has not filled it
    uint64_t size_at;  // address of the area's size in bytes
    uint64_t saved;    // parts of the registers, a bit each as in XCR0
};
// Finds those in the code of a dynamic linker.
std::vector<LazyBinding> lazy_bindings(Range code);

// Size of an area for `saved` on a machine with layout `now`; 0 when that is no more than it was.
uint64_t larger_register_area(const XstateLayout& was, const XstateLayout& now, uint64_t saved);

// Makes room for `size` bytes. Empty, or one line that says why not.
std::string enlarge_register_area(const LazyBinding& binding, uint64_t size);

// Makes room at a restart, as fit_frames_to_cpu(), where this CPU has more registers than the one that wrote
// the image. `linkers`: code of dynamic linkers. Empty, or one line that says why that cannot be done.
std::string fit_lazy_binding_to_cpu(const std::vector<Range>& linkers);

}  // namespace fermata::split::threads
