#include "split/alloc/lower_advice.h"

#include "base/ranges.h"
#include "split/address/raw.h"
#include "split/address/window.h"

namespace fermata::split {
namespace {

SpinLock lock;
std::vector<Range>& marked() {
    static auto* ranges = new std::vector<Range>;  // for the life of the process
    return *ranges;
}

}  // namespace

void note_lower_advice(const void* address, size_t size, int advice) noexcept {
    if (advice != MADV_DONTFORK && advice != MADV_DOFORK) return;
    auto begin = page_down(reinterpret_cast<uint64_t>(address));
    // The library's own arguments: the kernel would refuse them.
    if (size == 0 || size > kUserTop || begin > kUserTop) return;
    const Range range(begin, page_up(reinterpret_cast<uint64_t>(address) + size));
    if (!upper_range(range)) return;
    lock.lock();
    std::vector<Range> rest = difference(marked(), {range});
    if (advice == MADV_DONTFORK) {
        auto at = rest.begin();
        while (at != rest.end() && at->begin() < range.begin()) ++at;
        rest.insert(at, range);
    }
    marked() = std::move(rest);
    lock.unlock();
}

std::vector<Range> kept_from_children_below() {
    lock.lock();
    std::vector<Range> ranges = marked();
    lock.unlock();
    return ranges;
}

}  // namespace fermata::split
