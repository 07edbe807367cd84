// A Range is the bytes from one address or offset up to another one, which is never the smaller of the two.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/invariant.h"

namespace fermata {

class Range {
  public:
    constexpr Range() = default;  // empty, at 0
    constexpr Range(uint64_t begin, uint64_t end) : begin_(begin), end_(end) {
        always(begin <= end, "a range that ends before it begins");
    }
    static constexpr Range sized(uint64_t begin, uint64_t size) {
        always(size <= UINT64_MAX - begin, "a range beyond the last address");
        return {begin, begin + size};
    }

    constexpr uint64_t begin() const { return begin_; }
    constexpr uint64_t end() const { return end_; }  // one past the last byte
    constexpr uint64_t size() const { return end_ - begin_; }
    constexpr bool empty() const { return end_ == begin_; }
    constexpr bool contains(uint64_t address) const { return address >= begin_ && address < end_; }
    constexpr bool contains(Range other) const { return other.begin_ >= begin_ && other.end_ <= end_; }
    constexpr bool overlaps(Range other) const { return other.begin_ < end_ && begin_ < other.end_; }
    // The part that both have; empty when there is none.
    constexpr Range common(Range other) const {
        const uint64_t begin = begin_ > other.begin_ ? begin_ : other.begin_;
        const uint64_t end = end_ < other.end_ ? end_ : other.end_;
        return begin < end ? Range(begin, end) : Range();
    }
    // The smallest range that holds both and all between them.
    constexpr Range hull(Range other) const {
        return {begin_ < other.begin_ ? begin_ : other.begin_, end_ > other.end_ ? end_ : other.end_};
    }
    void* pointer() const { return reinterpret_cast<void*>(begin_); }
    constexpr bool operator==(const Range&) const = default;

  private:
    uint64_t begin_ = 0;
    uint64_t end_ = 0;
};

}  // namespace fermata
