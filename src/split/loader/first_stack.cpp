#include "split/loader/first_stack.h"

#include <elf.h>

#include <cstring>

#include "base/error.h"
#include "base/fd.h"

namespace fermata::split {

uint64_t StackBuilder::bytes(const void* data, size_t size) {
    at_ -= size;
    if (at_ < stack_.begin() + kPage || size > stack_.size() / 4)
        fail("arguments and environment are too long for a stack of {} KiB", stack_.size() >> 10);
    std::memcpy(reinterpret_cast<void*>(at_), data, size);
    return at_;
}

std::vector<std::pair<uint64_t, uint64_t>> own_auxv() {
    std::string bytes = read_file("/proc/self/auxv");
    std::vector<std::pair<uint64_t, uint64_t>> result;
    for (size_t at = 0; at + 16 <= bytes.size(); at += 16) {
        uint64_t pair[2];
        std::memcpy(pair, bytes.data() + at, 16);
        if (pair[0] == AT_NULL) break;
        result.emplace_back(pair[0], pair[1]);
    }
    return result;
}

}  // namespace fermata::split
