// Medium is what a node keeps generations of its own on: its memory, or its disk. NodePlace is that of one
// node.
#pragma once

#include <fmt/core.h>

#include <compare>
#include <cstdint>
#include <string>

namespace fermata {

enum class Medium : uint32_t { memory, local };
inline constexpr Medium kMediums[] = {Medium::memory, Medium::local};

// "the memory of a", "the local directory of a"
inline std::string words_of(Medium medium, const std::string& node) {
    return fmt::format("{} of {}", medium == Medium::memory ? "the memory" : "the local directory", node);
}

struct NodePlace {
    std::string node;
    Medium medium = Medium::memory;
    std::string words() const { return words_of(medium, node); }
    auto operator<=>(const NodePlace&) const = default;
};

}  // namespace fermata
