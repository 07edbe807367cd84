#include "split/threads/xstate.h"

#include <asm/sigcontext.h>
#include <cpuid.h>

#include <cstring>

namespace fermata::split::threads {
namespace {

// struct _fpx_sw_bytes in bytes 464..511 of the FXSAVE image (asm/sigcontext.h); xsave header at 512.
constexpr size_t kSoftwareBytes = 464;
constexpr size_t kHeader = 512;
constexpr uint32_t kMagic2Size = 4;

const char* component_name(int bit) {
    switch (bit) {
        case 2:
            return "AVX";
        case 5:
        case 6:
        case 7:
            return "AVX-512";
        case 9:
            return "protection keys";
        case 17:
        case 18:
            return "AMX";
        case 19:
            return "APX";
        default:
            return "a vector extension";
    }
}

}  // namespace

FrameXstate read_frame(const ucontext_t* frame) {
    FrameXstate found;
    const auto* area = reinterpret_cast<const unsigned char*>(frame->uc_mcontext.fpregs);
    if (area == nullptr) return found;
    _fpx_sw_bytes software;
    std::memcpy(&software, area + kSoftwareBytes, sizeof software);
    if (software.magic1 != FP_XSTATE_MAGIC1) return found;
    found.features = software.xfeatures;
    found.size = software.xstate_size;
    std::memcpy(&found.in_use, area + kHeader, sizeof found.in_use);
    return found;
}

XstateLayout layout_of(const FrameXstate& frame) {
    XstateLayout layout = {};
    layout.features = frame.features;
    layout.size = frame.size;
    for (unsigned bit = 2; bit < 32; ++bit) {
        unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
        if (__get_cpuid_count(0xd, bit, &eax, &ebx, &ecx, &edx) == 0) break;
        layout.component[bit] = {ebx, eax};
    }
    return layout;
}

std::string fit_frame(ucontext_t* frame, const XstateLayout& was, const XstateLayout& now) {
    FrameXstate state = read_frame(frame);
    if (state.size == 0) return {};  // FXSAVE only: every CPU has it
    auto* area = reinterpret_cast<unsigned char*>(frame->uc_mcontext.fpregs);
    for (int bit = 2; bit < 32; ++bit) {
        uint64_t mask = uint64_t{1} << bit;
        if ((state.features & mask) == 0) continue;
        bool same = (now.features & mask) != 0 && was.component[bit].offset == now.component[bit].offset &&
                    was.component[bit].size == now.component[bit].size;
        if (same) continue;
        if ((state.in_use & mask) != 0)
            return std::string("a thread was saved while it used ") + component_name(bit) +
                   " registers that this CPU does not have or lays out differently: restart on a node like "
                   "the "
                   "first, or run the application limited to a common instruction set";
        state.features &= ~mask;
    }
    // The kernel takes a frame whose area is larger than its own for a legacy one and would drop AVX
    // silently.
    uint32_t size = state.size < now.size ? state.size : now.size;
    _fpx_sw_bytes software;
    std::memcpy(&software, area + kSoftwareBytes, sizeof software);
    software.xfeatures = state.features;
    software.xstate_size = size;
    software.extended_size = size + kMagic2Size;
    std::memcpy(area + kSoftwareBytes, &software, sizeof software);
    uint32_t magic2 = FP_XSTATE_MAGIC2;
    std::memcpy(area + size, &magic2, sizeof magic2);
    return {};
}

}  // namespace fermata::split::threads
