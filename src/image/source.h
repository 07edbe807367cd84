// A Source gives the bytes of an image, or of text that images refer to. Offsets count from its beginning,
// and several threads may read. Files are the first implementation (file_source.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace fermata::image {

// One reading of most of a source.
class Stream {
  public:
    virtual ~Stream() = default;
    // Reads the part of `size` bytes at `at` that can be had at once, from their beginning: the number of
    // bytes, 0 if this is not known.
    virtual uint64_t read_cached(char* to, uint64_t size, uint64_t at) noexcept = 0;
    // Throws with name and offset.
    virtual void read(char* to, uint64_t size, uint64_t at) = 0;
    // Past the page cache: large reads of whole pages are faster, and nobody reads ahead.
    virtual bool direct() const noexcept = 0;
};

class Source {
  public:
    virtual ~Source() = default;
    // For messages: what holds the bytes, and from where on in there. No value: they are all that it holds.
    virtual const std::string& name() const = 0;
    virtual std::optional<uint64_t> part() const = 0;
    uint64_t begin() const { return part().value_or(0); }
    // Bytes from the beginning to the end of what holds them.
    virtual uint64_t size() const = 0;
    // Throws with name and offset, also when there are fewer.
    virtual void read(void* to, uint64_t size, uint64_t at) const = 0;
    // How many of these bytes are stored nowhere and read as zeros; 0 when nobody knows.
    virtual uint64_t holes(uint64_t at, uint64_t size) const = 0;
    // `past_cache`: past the page cache, where the storage can do that.
    virtual std::unique_ptr<Stream> stream(bool past_cache) const = 0;
    // The descriptor that reading needs, -1 = none.
    virtual int descriptor() const = 0;
};

}  // namespace fermata::image
