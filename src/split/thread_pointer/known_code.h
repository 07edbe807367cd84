// The accesses of a library (accesses.h) as bytes of a file, docs/formats/code.md, with all that has to be
// the same when they are used again.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::split::thread_pointer {

// The facts under which the accesses are true.
struct CodeHead {
    std::array<char, 8> magic{'F', 'M', 'C', 'O', 'D', 'E', '0', '1'};
    // Hash (hex) of the decoder's sources, and of Zydis. A book made by another decoder is not used: its
    // results may differ.
    std::array<char, 64> decoder{};
    uint64_t zydis = 0;
    // The file that the library was mapped from: code may be changed there and the build-id left as it was.
    uint64_t device = 0, inode = 0, size = 0, modified_ns = 0, changed_ns = 0;
    // Code, in distances from the library's base.
    uint64_t begin = 0, end = 0;
    uint64_t count = 0;  // of accesses

    bool operator==(const CodeHead&) const = default;
};

// Distances of the prefixes from the library's base, in ascending order.
using Prefixes = std::vector<uint32_t>;

// `head.count` is set to the number of prefixes.
std::string bytes_of(CodeHead head, const Prefixes& prefixes);
// Gives prefixes only if `bytes` are whole and their head is `wanted` (but for the count), with all prefixes
// inside the code.
std::optional<Prefixes> prefixes_in(std::string_view bytes, const CodeHead& wanted);

}  // namespace fermata::split::thread_pointer
