// Stripes of random bytes for the tests of the code.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "erasure/code.h"

namespace fermata::erasure {

using Chunk = std::vector<uint8_t>;

inline std::vector<Chunk> random_data(std::mt19937& random, uint32_t count, size_t bytes) {
    std::vector<Chunk> chunks(count, Chunk(bytes));
    for (Chunk& chunk : chunks)
        for (uint8_t& byte : chunk) byte = static_cast<uint8_t>(random());
    return chunks;
}

inline std::vector<const uint8_t*> pointers(const std::vector<Chunk>& chunks) {
    std::vector<const uint8_t*> all;
    for (const Chunk& chunk : chunks) all.push_back(chunk.data());
    return all;
}

inline std::vector<uint8_t*> places(std::vector<Chunk>& chunks) {
    std::vector<uint8_t*> all;
    for (Chunk& chunk : chunks) all.push_back(chunk.data());
    return all;
}

// The chunks of a stripe: data, then parity.
inline std::vector<Chunk> encoded(const Layout& layout, const std::vector<Chunk>& data) {
    std::vector<Chunk> parity(layout.losses(), Chunk(data[0].size())), all = data;
    Code(layout).parity(0, layout.losses()).apply(pointers(data), places(parity), data[0].size());
    all.insert(all.end(), parity.begin(), parity.end());
    return all;
}

}  // namespace fermata::erasure
