// A line put together from pieces in the caller's memory, cut off where that ends. No malloc: any context.
#pragma once

#include <cstddef>

namespace fermata::front {

class Line {
  public:
    Line(char* text, size_t size) : text_(text), size_(size) {
        if (size_ > 0) text_[0] = 0;
    }
    Line& operator<<(const char* piece) {
        while (*piece != 0 && length_ + 1 < size_) text_[length_++] = *piece++;
        if (size_ > 0) text_[length_] = 0;
        return *this;
    }

    Line& operator<<(int number) {
        char digits[12];
        char* at = digits + sizeof digits - 1;
        *at = 0;
        unsigned rest = number < 0 ? 0u - static_cast<unsigned>(number) : static_cast<unsigned>(number);
        do *--at = static_cast<char>('0' + rest % 10);
        while ((rest /= 10) != 0);
        if (number < 0) *--at = '-';
        return *this << at;
    }

  private:
    char* text_;
    size_t size_, length_ = 0;
};

}  // namespace fermata::front
