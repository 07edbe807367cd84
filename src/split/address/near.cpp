#include "split/address/near.h"

#include <cstring>
#include <initializer_list>

#include "split/address/raw.h"
#include "split/address/window.h"

namespace fermata::split {

uint8_t* page_near(Range text) noexcept {
    for (uint64_t step = 1 << 20; step < 1ull << 30; step += 1 << 20) {
        for (uint64_t at : {text.begin - step, text.end + step}) {
            at = page_down(at);
            if (at < kWindow.end) continue;
            long rc = raw_mmap(at, kPage, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE);
            if (rc == long(at)) return reinterpret_cast<uint8_t*>(rc);
            if (!failed(rc)) raw_munmap(uint64_t(rc), kPage);  // kernels before 4.17 take it as a hint
        }
    }
    return nullptr;
}

void put_displacement(uint8_t* at, int64_t value) noexcept {
    auto v = int32_t(value);
    std::memcpy(at, &v, 4);
}

}  // namespace fermata::split
