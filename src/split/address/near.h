// Code that other code can jump to with a 32-bit displacement.
#pragma once

#include <cstdint>

#include "split/address/range.h"

namespace fermata::split {

// A new page, writable, within 1 GiB of `text` and outside of the window; null when there is no room. No TLS.
uint8_t* page_near(Range text) noexcept;

// Writes `value` as a displacement of 32 bits, which it must fit.
void put_displacement(uint8_t* at, int64_t value) noexcept;

}  // namespace fermata::split
