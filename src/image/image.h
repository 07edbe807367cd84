// One rank's image: format in docs/formats/image.md.
//
// A file is a header page, page-aligned data, and an index at the end. Every chunk of data and every blob has
// an xxh3-128 in the index, the index has one in the header, the header has one of its own: nothing is used
// before its checksum has been compared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"

namespace fermata::image {

inline constexpr uint32_t kFormatVersion = 1;
inline constexpr uint64_t kPage = 4096;
inline constexpr uint64_t kChunk =
    4 << 20;  // large enough for the storage's speed, small enough to name a fault

// Of one rank's image, inside the directory of its generation.
std::string image_name(uint32_t rank);

struct Checksum {
    std::array<uint8_t, 16> bytes{};
    bool operator==(const Checksum&) const = default;
    std::string hex() const;
};
Checksum checksum_of(const void* data, size_t size);

// Whose image this is; a reader refuses another.
struct Identity {
    uint64_t job = 0;  // random, chosen when the job first started; the same over restarts
    uint32_t generation = 0;
    uint32_t rank = 0;
    uint32_t ranks = 0;
    bool operator==(const Identity&) const = default;
};

struct Chunk {
    uint64_t address;  // where the bytes were in memory
    uint64_t length;   // bytes, multiple of the page size
    uint64_t offset;   // in the file, multiple of the page size
    Checksum checksum;
};

struct Region {
    std::vector<std::byte> header;  // opaque to the image: what the split process needs to map it again
    std::vector<Chunk> chunks;
};

struct Blob {
    std::string name;
    std::vector<std::byte> bytes;
};

struct Summary {
    uint64_t bytes = 0;  // file size
    Checksum checksum;   // of the header: stands for the whole file
};

// Writes an image. Memory is written straight from where it is. The file exists under `path` only as an
// incomplete image until finish() returns; the caller's generation is not committed before that.
class Writer {
  public:
    // Creates `path` (0600); throws if it exists.
    Writer(std::string path, const Identity& identity);

    void blob(const std::string& name, const void* data, size_t size);
    void begin_region(const void* header, size_t size);
    // Data of the region begun last. `address` and `length` are multiples of the page size.
    void run(uint64_t address, const void* data, uint64_t length);
    // Index, header, fsync. `sync` false only for tests and memory file systems.
    Summary finish(bool sync = true);

  private:
    void put(const void* data, size_t size);

    std::string path_;
    Identity identity_;
    Fd fd_;
    uint64_t at_ = kPage;
    uint64_t flushed_ = 0;
    std::vector<Region> regions_;
    std::vector<Blob> blobs_;
};

// Reads an image. The constructor has compared header and index; data is compared as it is read.
class Reader {
  public:
    explicit Reader(std::string path);

    const Identity& identity() const { return identity_; }
    const Summary& summary() const { return summary_; }
    const std::vector<Region>& regions() const { return regions_; }
    const std::vector<Blob>& blobs() const { return blobs_; }
    // Throws when there is none of this name.
    const std::vector<std::byte>& blob(const std::string& name) const;
    // Reads a chunk to `destination` and compares its checksum; throws with file and offset.
    void read(const Chunk& chunk, void* destination) const;
    // Compares every byte of the file.
    void verify() const;

  private:
    std::string path_;
    Identity identity_;
    Summary summary_;
    Fd fd_;
    std::vector<Region> regions_;
    std::vector<Blob> blobs_;
};

}  // namespace fermata::image
