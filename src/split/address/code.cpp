#include "split/address/code.h"

#include <cstring>
#include <initializer_list>

#include "split/address/raw.h"
#include "split/address/window.h"

namespace fermata::split {

uint8_t* page_near(Range text) noexcept {
    for (uint64_t step = 1 << 20; step < 1ull << 30; step += 1 << 20) {
        for (uint64_t at : {text.begin() - step, text.end() + step}) {
            at = page_down(at);
            if (at < kWindow.end()) continue;
            long rc = raw_mmap(at, kPage, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE);
            if (rc == long(at)) return reinterpret_cast<uint8_t*>(rc);
            if (!failed(rc)) raw_munmap(uint64_t(rc), kPage);  // kernels before 4.17 take it as a hint
        }
    }
    return nullptr;
}

namespace {
bool protect(Range code, int protection) noexcept {
    const uint64_t begin = page_down(code.begin());
    return !failed(raw_mprotect(begin, page_up(code.end()) - begin, protection));
}
}  // namespace

bool make_writable(Range code) noexcept { return protect(code, PROT_READ | PROT_WRITE | PROT_EXEC); }
bool make_executable(Range code) noexcept { return protect(code, PROT_READ | PROT_EXEC); }

void write_jump(uint8_t* at, const uint8_t* target) noexcept {
    const auto displacement = static_cast<int32_t>(target - (at + kJump));
    at[0] = 0xe9;
    std::memcpy(at + 1, &displacement, sizeof displacement);
}

int system_call_at(const uint8_t* at) noexcept {
    const bool site = at[0] == 0xb8 && at[3] == 0 && at[4] == 0 && at[5] == 0x0f && at[6] == 0x05;
    return site ? at[1] | at[2] << 8 : -1;
}

void divert_system_call(uint8_t* site, const uint8_t* target) noexcept {
    write_jump(site, target);
    site[5] = 0x66;  // two bytes that do nothing, in one instruction
    site[6] = 0x90;
}

}  // namespace fermata::split
