// Changing code where it lies. No TLS, no libc state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/page.h"
#include "base/range.h"

namespace fermata::split {

// A new page, writable, within 1 GiB of `text` and of the same half: code there and `text` reach each other
// by jumps. Null when there is no room.
uint8_t* page_near(Range text) noexcept;

// The pages that `code` touches become writable, too, or executable and no more than that. False: the kernel
// refuses (SELinux's execmod).
bool make_writable(Range code) noexcept;
bool make_executable(Range code) noexcept;

inline constexpr size_t kJump = 5;  // bytes
void write_jump(uint8_t* at, const uint8_t* target) noexcept;

// A system call as glibc's functions have it:
//     b8 NN NN 00 00   mov $NN, %eax
//     0f 05            syscall
inline constexpr size_t kCallSite = 7;  // bytes
// Its number, -1: there is none at `at`.
int system_call_at(const uint8_t* at) noexcept;
// All seven bytes become a jump.
void divert_system_call(uint8_t* site, const uint8_t* target) noexcept;

}  // namespace fermata::split
