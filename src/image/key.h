// Key reads the key file of a job and derives the keys and seals that images and manifests need
// (docs/formats/encryption.md).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "image/checksum.h"

namespace fermata::image {

// A Tag authenticates the bytes that it was made of, under a key.
struct Tag {
    std::array<uint8_t, 16> bytes{};
    bool operator==(const Tag&) const = default;
};

// The key is missing, another one, or not wanted: nothing is known to be damaged.
struct KeyError : Error {
    using Error::Error;
};

class Key;
using KeyPointer = std::shared_ptr<const Key>;  // null: nothing is encrypted

// 32 bytes in a page of their own that is not swapped out where that may be had, not in core dumps, empty in
// children, and wiped.
class Key {
  public:
    // A file of 64 hex digits that nobody but its owner may read. Throws KeyError.
    static KeyPointer from_file(const std::string& path);
    // null for an empty path
    static KeyPointer from_file_or_none(const std::string& path) {
        return path.empty() ? nullptr : from_file(path);
    }
    ~Key();
    Key(const Key&) = delete;
    Key& operator=(const Key&) = delete;

    // Stands for the key and tells nothing of it.
    Checksum id() const { return id_; }
    // A secret for one purpose and subject, which tells nothing of the key or of any other.
    void derive(const char* purpose, const void* subject, size_t size,
                std::array<uint8_t, 32>& out) const noexcept;
    // The seal of text that anybody may read and only holders of the key may write.
    std::string seal_of(const std::string& text) const;

  private:
    explicit Key(const std::array<uint8_t, 32>& bytes);
    unsigned char* bytes_ = nullptr;
    Checksum id_;
};

// How to say that a key does not fit. `subject`: "FILE" or "generation gen-000001 in DIRECTORY".
// `wanted`: id of the key it is encrypted with, none when it is not. Throws KeyError.
void check_key(const std::string& subject, const std::optional<Checksum>& wanted, const Key* given);

}  // namespace fermata::image
