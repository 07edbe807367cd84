// Where the upper half's libc remembers the break.
//
// The upper half has none: in the process it started in, a filler lies behind the kernel's break. In another
// process the kernel's break is elsewhere, and brk(2) with an address below it "succeeds" with no memory
// behind: glibc 2.36's sbrk only compares with what the kernel returns, and malloc writes to nowhere. So a
// restart resets what libc remembers.
#pragma once

#include <cstdint>
#include <vector>

#include "split/address/maps.h"

namespace fermata::split {

// Address of `__curbrk` in the upper half's libc.so.6, 0 when there is no such library.
uint64_t find_break_word(const std::vector<Mapping>& maps);
// In a restarted process libc's mappings have lost their name: the address comes from the image.
void remember_break_word(uint64_t address);

}  // namespace fermata::split
