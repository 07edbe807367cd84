// This header computes xxh3-128 with the best instructions of this processor. It uses no malloc.
#pragma once

#define XXH_STATIC_LINKING_ONLY  // the state as a value
#include <xxhash.h>
// after it
#include <xxh_x86dispatch.h>

#include <cstring>

#include "image/image.h"

namespace fermata::image {

class Hash {
  public:
    Hash() noexcept { XXH3_128bits_reset(&state_); }
    void add(const void* data, size_t size) noexcept { XXH3_128bits_update_dispatch(&state_, data, size); }
    Checksum sum() const noexcept { return canonical(XXH3_128bits_digest(&state_)); }

    static Checksum of(const void* data, size_t size) noexcept {
        return canonical(XXH3_128bits_dispatch(data, size));
    }

  private:
    static Checksum canonical(XXH128_hash_t hash) noexcept {
        XXH128_canonical_t bytes;
        XXH128_canonicalFromHash(&bytes, hash);
        Checksum out;
        std::memcpy(out.bytes.data(), bytes.digest, out.bytes.size());
        return out;
    }
    XXH3_state_t state_;
};

}  // namespace fermata::image
