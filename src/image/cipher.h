// This header encrypts and decrypts what lies in the file of an image, with XChaCha20-Poly1305. It uses no
// malloc and no lock, so that a forked child may call it; docs/formats/encryption.md says why no nonce is
// used twice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "image/key.h"

namespace fermata::image {

struct Block;

// Ciphers, by their numbers in a header.
enum class Cipher : uint32_t { none = 0, xchacha20_poly1305 = 1 };

using Salt = std::array<uint8_t, 32>;
Salt random_salt();

// FileKey is the key of one file's content, made from the job's key. Each message sealed with it has a place
// of its own in the file, and is sealed once.
class FileKey {
  public:
    FileKey() = default;  // none
    // The key of an image. `header` is all that identifies the image, the salt included.
    static FileKey of_image(const Key& key, const void* header, size_t size);
    // The key of a text file. Text of one content has one name under one key.
    static FileKey of_text(const Key& key, const Checksum& name);
    FileKey(const FileKey&) = default;
    FileKey& operator=(const FileKey&) = default;
    ~FileKey();
    explicit operator bool() const { return present_; }

    // `in` may be `out`. `block` says where it lies and what it is.
    Tag seal(const void* in, void* out, const Block& block) const noexcept;
    bool open(void* data, const Block& block) const noexcept;
    // The index of an image; `header`: all of it that stands before the tag.
    Tag seal_index(void* data, size_t size, const void* header, size_t header_size) const noexcept;
    bool open_index(void* data, size_t size, const Tag& tag, const void* header,
                    size_t header_size) const noexcept;

  private:
    FileKey(const Key& key, const char* purpose, const void* subject, size_t size);
    bool present_ = false;
    std::array<uint8_t, 32> bytes_{};
};

// The name of text that only holders of the key can make from its content.
class TextName {
  public:
    explicit TextName(const Key& key);
    ~TextName();
    void add(const void* data, size_t size);
    Checksum name();

  private:
    alignas(64) std::array<unsigned char, 384> state_;
};

}  // namespace fermata::image
