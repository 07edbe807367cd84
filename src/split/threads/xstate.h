// The vector registers in signal frames: how this machine lays them out, and whether frames of another fit.
#pragma once

#include <ucontext.h>

#include <string>

#include "split/threads/records.h"

namespace fermata::split::threads {

// The xsave area behind a signal frame, as the kernel describes it in the frame (sw_reserved).
struct FrameXstate {
    uint64_t features = 0;  // components the area has room for; 0 = legacy FXSAVE only
    uint32_t size = 0;
    uint64_t in_use = 0;  // components that are not in their initial state (XSTATE_BV)
};
FrameXstate read_frame(const ucontext_t* frame);

// CPUID leaf 0xd plus what `frame` says; what this machine does with frames.
XstateLayout layout_of(const FrameXstate& frame);

// Makes `frame`, captured under `was`, acceptable to a machine with layout `now`: components that are not in
// use are dropped. Empty, or one line that names a component in use that the CPU lacks or lays out
// differently. The layout of this process's kernel and CPU, learnt by install_stop_handler.
const XstateLayout& own_xstate_layout();

std::string fit_frame(ucontext_t* frame, const XstateLayout& was, const XstateLayout& now);

}  // namespace fermata::split::threads
