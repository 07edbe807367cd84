// Digest of all that a process has handed to the library since its copy was made: XXH3, 64 bits, each piece
// with what came before as its seed.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "replay/memory.h"

namespace fermata::replay {

class Digest {
  public:
    void add(const Bytes& bytes) { value_ = XXH3_64bits_withSeed(bytes.data(), bytes.size(), value_); }
    uint64_t value() const { return value_; }

  private:
    uint64_t value_ = 0;
};

}  // namespace fermata::replay
