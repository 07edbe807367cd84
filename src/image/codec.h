// This header compresses and decompresses the bytes of a block. It uses no malloc and no exceptions, so that
// a forked child may call it.
#pragma once

#include <cstddef>

#include "image/image.h"

namespace fermata::image {

const char* name_of(Codec codec);

// Work memory that encode() needs for blocks of up to `length` bytes; aligned to 16 bytes when used.
size_t encode_scratch(Codec codec, int level, size_t length);
// Stored bytes of `content` in `out`, or 0 when they would be more than `limit`.
size_t encode(Codec codec, int level, const void* content, size_t length, void* out, size_t limit,
              void* scratch, size_t scratch_size) noexcept;

// False when `stored` is not what encode() makes of `length` bytes. `scratch`: `length` bytes.
bool decode(Codec codec, const void* stored, size_t size, void* content, size_t length,
            void* scratch) noexcept;

// Byte k of every 8-byte element together; `size` is a multiple of 128.
void shuffle(const void* in, void* out, size_t size) noexcept;
void unshuffle(const void* in, void* out, size_t size) noexcept;

}  // namespace fermata::image
