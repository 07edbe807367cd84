// Reading and writing at a place of a file, whole pieces at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace fermata::lower {

constexpr size_t kPiece = 64 << 10;

struct Extent {
    int64_t begin, end;
};

// Reads up to `size` bytes; fewer at the end of the file. Throws fermata::Error.
size_t read_at(int file, char* to, size_t size, int64_t at);
void write_at(int file, const char* from, size_t size, int64_t at);

template <typename Visit>
void in_pieces(Extent extent, const Visit& visit) {
    for (int64_t at = extent.begin; at < extent.end; at += kPiece)
        visit(at, static_cast<size_t>(std::min<int64_t>(kPiece, extent.end - at)));
}

}  // namespace fermata::lower
