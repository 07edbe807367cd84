// This header has the bytes of an image's header and index (docs/formats/image.md), as writer.cpp and
// reader.cpp share them; the entries of the index are the Block, Extent and Reference of image.h. All numbers
// are little-endian.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "image/image.h"

namespace fermata::image {

inline constexpr char kMagic[8] = {'F', 'E', 'R', 'M', 'I', 'M', 'G', '1'};

// The first page; `checksum` covers all bytes before it. Members before `index_offset` are known when the
// first block is written.
struct Header {
    char magic[8];
    uint32_t version;
    uint32_t page;
    uint64_t job;
    uint32_t generation;
    uint32_t rank;
    uint32_t ranks;
    Cipher cipher;
    Salt salt;  // these three: zeros when it is not encrypted
    Checksum key_id;
    uint64_t index_offset;
    uint64_t index_size;
    uint64_t file_size;
    Tag index_tag;
    Checksum index_checksum;  // of the index as it is stored
    Checksum checksum;
};
static_assert(std::is_trivially_copyable_v<Header> && sizeof(Header) == 160);
// Written as they are.
static_assert(sizeof(Block) == 56 && sizeof(Extent) == 24 && sizeof(Reference) == 32);

class Packer {
  public:
    template <typename T>
    void value(const T& v) {
        static_assert(std::is_trivially_copyable_v<T>);
        bytes(&v, sizeof v);
    }
    void bytes(const void* data, size_t size) {
        auto* p = static_cast<const std::byte*>(data);
        out.insert(out.end(), p, p + size);
    }
    void sized(const void* data, size_t size) {
        value(static_cast<uint64_t>(size));
        bytes(data, size);
    }
    std::vector<std::byte> out;
};

// Refuses to read past the end and counts that cannot fit.
class Unpacker {
  public:
    Unpacker(const std::vector<std::byte>& in, std::string path) : in_(in), path_(std::move(path)) {}
    template <typename T>
    T value() {
        T v;
        std::memcpy(&v, take(sizeof v), sizeof v);
        return v;
    }
    const std::byte* take(uint64_t size) {
        if (size > in_.size() - at_) fail("{} is damaged: its index ends early", path_);
        const std::byte* p = in_.data() + at_;
        at_ += size;
        return p;
    }
    // A count of items of at least `item` bytes each.
    uint64_t count(uint64_t item) {
        auto n = value<uint64_t>();
        if (n > (in_.size() - at_) / item) fail("{} is damaged: impossible count in its index", path_);
        return n;
    }
    template <typename T>
    std::vector<T> values() {
        std::vector<T> all(count(sizeof(T)));
        if (!all.empty()) std::memcpy(all.data(), take(all.size() * sizeof(T)), all.size() * sizeof(T));
        return all;
    }
    bool at_end() const { return at_ == in_.size(); }

  private:
    const std::vector<std::byte>& in_;
    std::string path_;
    uint64_t at_ = 0;
};

}  // namespace fermata::image
