// Text into a fixed buffer without stdio, for the agent's context. Text that does not fit is cut.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fermata::clock {

class Text {
  public:
    Text(char* text, size_t capacity) : text_(text), capacity_(capacity) {}
    Text& operator<<(const char* s) {
        while (*s && size_ < capacity_) text_[size_++] = *s++;
        return *this;
    }
    Text& operator<<(uint64_t value) {
        char digits[21];
        char* p = digits + 20;
        *p = 0;
        do *--p = static_cast<char>('0' + value % 10);
        while (value /= 10);
        return *this << static_cast<const char*>(p);
    }
    size_t size() const { return size_; }

  private:
    char* text_;
    size_t capacity_;
    size_t size_ = 0;
};

}  // namespace fermata::clock
