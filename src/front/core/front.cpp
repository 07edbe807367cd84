#include "front/core/front.h"

#include "front/core/library_lock.h"

namespace fermata::front {

Front front;
constinit SpinLock library_lock{};

void add_watch(Watch bits) noexcept { __atomic_fetch_or(&front.watch, bits, __ATOMIC_SEQ_CST); }

void set_careful(uint32_t bits) noexcept {
    __atomic_fetch_or(&front.careful, bits, __ATOMIC_SEQ_CST);
    if ((bits & (kPending | kFrozen)) != 0) front.attention = 1;
}
void clear_careful(uint32_t bits) noexcept {
    uint32_t now = __atomic_and_fetch(&front.careful, ~bits, __ATOMIC_SEQ_CST);
    if ((now & (kPending | kFrozen)) == 0) front.attention = 0;
}

}  // namespace fermata::front
