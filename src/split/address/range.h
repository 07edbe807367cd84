// A range of addresses, page-aligned unless said otherwise: a type rather than two integers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/page.h"

namespace fermata::split {

struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;  // one past the last byte

    constexpr uint64_t size() const { return end - begin; }
    constexpr bool empty() const { return end <= begin; }
    constexpr bool contains(uint64_t address) const { return address >= begin && address < end; }
    constexpr bool contains(Range other) const { return other.begin >= begin && other.end <= end; }
    constexpr bool overlaps(Range other) const { return other.begin < end && begin < other.end; }
    void* pointer() const { return reinterpret_cast<void*>(begin); }
    constexpr bool operator==(const Range&) const = default;
};

inline constexpr uint64_t page_down(uint64_t value) { return value & ~(kPage - 1); }

}  // namespace fermata::split
