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

  private:
    char* text_;
    size_t size_, length_ = 0;
};

}  // namespace fermata::front
