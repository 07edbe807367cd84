// Memory that the library allocates for a window (MPI_Win_allocate) and shares between the processes of a
// node, mapped a second time: the application sees the same pages at an address of the upper half, where the
// image holds them.
//
// Only then does the library reach a neighbour's memory by itself. Over memory of ours Open MPI 4.1 asks the
// target for every atomic operation (without XPMEM), and the target may be computing.
#pragma once

#include "front/objects/api.h"
#include "front/objects/win.h"

namespace fermata::front {

// Collective over the window's private communicator. All members or none: `real` is the library's window, and
// `win->base` the application's view of its memory; at a restart where it was, with its content. False: no
// window is left of it; the library's memory is not shared (one process), or, after a restart on another
// library, does not lie in its page as it did. Agent or caller's context.
bool library_allocates(WinObject* win, RealWin* real) noexcept;

}  // namespace fermata::front
