#include "front/objects/library_memory.h"

#include <sys/mman.h>

#include "base/page.h"
#include "front/core/bridge.h"
#include "front/core/fatal.h"
#include "front/core/sys.h"
#include "front/objects/internal.h"

namespace fermata::front {
namespace {

// The pages of `size` bytes at an address.
struct Pages {
    uint64_t start, length;
    Pages(const void* address, int64_t size) {
        auto at = reinterpret_cast<uint64_t>(address);
        start = at / kPage * kPage;
        length = (at + static_cast<uint64_t>(size) + kPage - 1) / kPage * kPage - start;
    }
};

// A second mapping of these pages, anywhere: an old size of 0 asks for one, and is refused for private
// memory.
uint64_t second_mapping(Pages pages) {
    long at =
        sys(SYS_mremap, static_cast<long>(pages.start), 0, static_cast<long>(pages.length), MREMAP_MAYMOVE);
    return failed(at) ? 0 : static_cast<uint64_t>(at);
}

}  // namespace

bool library_allocates(WinObject* win, RealWin* real) noexcept {
    // MPICH 4.0 asks the target in any case.
    if (!on_open_mpi() || win->comm->size == 1) return false;
    RealInfoFor hints(win_hints(win));
    void* theirs = nullptr;
    bool made = LOWER(Win_allocate)(win->size, win->disp_unit, RealInfo{hints.word()},
                                    RealComm{win->comm->real}, &theirs, real) == FM_SUCCESS;
    bool again = win->base != nullptr, some = made && win->size > 0;
    Pages pages(theirs, some ? win->size : 0);
    uint64_t offset = reinterpret_cast<uint64_t>(theirs) - pages.start;
    bool fits = !again || reinterpret_cast<uint64_t>(win->base) % kPage == offset;
    uint64_t view = some && fits ? second_mapping(pages) : 0;
    bool good = made && (!some || view != 0);
    if (agree(win->comm, good ? FM_SUCCESS : FM_ERR_NO_MEM) != FM_SUCCESS) {
        if (view != 0) fm_unmap(reinterpret_cast<void*>(view), pages.length);
        if (made) LOWER(Win_free)(real);
        return false;
    }
    if (!some) return true;
    if (again) {
        __builtin_memcpy(theirs, win->base, static_cast<size_t>(win->size));
        auto old = reinterpret_cast<uint64_t>(win->base) - offset;
        long moved =
            sys(SYS_mremap, static_cast<long>(view), static_cast<long>(pages.length),
                static_cast<long>(pages.length), MREMAP_MAYMOVE | MREMAP_FIXED, static_cast<long>(old));
        if (failed(moved)) fatal_line("fermata: cannot map a window's memory where it was");
        view = old;
    }
    win->owned = reinterpret_cast<void*>(view);
    win->owned_size = pages.length;
    win->base = reinterpret_cast<void*>(view + offset);
    return true;
}

}  // namespace fermata::front
