// The first words on the stack of a program that starts: arguments, environment, auxiliary vector.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/page.h"
#include "base/range.h"

namespace fermata::split {

// StackBuilder writes it, from the top down. Throws fermata::Error when there is too much.
class StackBuilder {
  public:
    explicit StackBuilder(Range stack) : stack_(stack), at_(stack.end() - 16) {}
    uint64_t bytes(const void* data, size_t size);
    uint64_t string(const std::string& text) { return bytes(text.c_str(), text.size() + 1); }
    void align() { at_ &= ~15ull; }
    uint64_t words(const std::vector<uint64_t>& words) {
        align();
        if (words.size() & 1) at_ -= 8;  // rsp must be 16-aligned at argc
        return bytes(words.data(), words.size() * 8);
    }

  private:
    Range stack_;
    uint64_t at_;
};

// The auxiliary vector of this process, as the kernel made it.
std::vector<std::pair<uint64_t, uint64_t>> own_auxv();

}  // namespace fermata::split
