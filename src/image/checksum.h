// Checksum is the xxh3-128 of images and manifests in the byte order in which it is stored.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace fermata::image {

struct Checksum {
    std::array<uint8_t, 16> bytes{};
    bool operator==(const Checksum&) const = default;
    std::string hex() const;
    // Gives none when the text is not what hex() gives.
    static std::optional<Checksum> of_hex(const std::string& text);
};
Checksum checksum_of(const void* data, size_t size);
std::string hex_of(const uint8_t* bytes, size_t size);

}  // namespace fermata::image
