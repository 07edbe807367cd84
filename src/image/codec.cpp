#include "image/codec.h"

#include <emmintrin.h>
#include <lz4.h>
#define ZSTD_STATIC_LINKING_ONLY  // contexts in memory of ours
#include <zstd.h>

namespace fermata::image {
namespace {

constexpr bool shuffles(Codec codec) { return codec == Codec::shuffle_lz4 || codec == Codec::shuffle_zstd; }
constexpr bool is_zstd(Codec codec) { return codec == Codec::zstd || codec == Codec::shuffle_zstd; }

// 128 bytes are a matrix of 16 elements by 8 bytes. The index of a byte has seven bits, element e3 e2 e1 e0
// and byte b2 b1 b0; the upper three number the register. One round of unpacking rotates the index left by
// one bit.
void rotate(__m128i v[8]) {
    __m128i t[8];
    for (size_t r = 0; r < 4; ++r) {
        t[2 * r] = _mm_unpacklo_epi8(v[r], v[r + 4]);
        t[2 * r + 1] = _mm_unpackhi_epi8(v[r], v[r + 4]);
    }
    for (size_t r = 0; r < 8; ++r) v[r] = t[r];
}

}  // namespace

void shuffle(const void* in, void* out, size_t size) noexcept {
    auto* from = static_cast<const char*>(in);
    auto* to = static_cast<char*>(out);
    for (size_t at = 0; at < size; at += 128) {
        __m128i v[8];
        for (size_t r = 0; r < 8; ++r)
            v[r] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + 16 * r));
        for (int round = 0; round < 4; ++round) rotate(v);
        for (size_t r = 0; r < 8; ++r)
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to + size / 8 * r + at / 8), v[r]);
    }
}

void unshuffle(const void* in, void* out, size_t size) noexcept {
    auto* from = static_cast<const char*>(in);
    auto* to = static_cast<char*>(out);
    for (size_t at = 0; at < size; at += 128) {
        __m128i v[8];
        for (size_t r = 0; r < 8; ++r)
            v[r] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + size / 8 * r + at / 8));
        for (int round = 0; round < 3; ++round) rotate(v);
        for (size_t r = 0; r < 8; ++r) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + at + 16 * r), v[r]);
    }
}

const char* name_of(Codec codec) {
    switch (codec) {
        case Codec::none:
            return "none";
        case Codec::lz4:
            return "lz4";
        case Codec::zstd:
            return "zstd";
        case Codec::shuffle_lz4:
            return "shuffle-lz4";
        case Codec::shuffle_zstd:
            return "shuffle-zstd";
    }
    return "unknown";
}

size_t encode_scratch(Codec codec, int level, size_t length) {
    if (codec == Codec::none) return 0;
    size_t state = is_zstd(codec) ? ZSTD_estimateCCtxSize(level) : static_cast<size_t>(LZ4_sizeofState());
    return (shuffles(codec) ? length : 0) + state;
}

size_t encode(Codec codec, int level, const void* content, size_t length, void* out, size_t limit,
              void* scratch, size_t scratch_size) noexcept {
    auto* state = static_cast<char*>(scratch);
    if (shuffles(codec)) {
        shuffle(content, scratch, length);
        content = scratch;
        state += length;
        scratch_size -= length;
    }
    if (is_zstd(codec)) {
        ZSTD_CCtx* context = ZSTD_initStaticCCtx(state, scratch_size);
        if (!context) return 0;
        size_t n = ZSTD_compressCCtx(context, out, limit, content, length, level);
        return ZSTD_isError(n) ? 0 : n;
    }
    int n = LZ4_compress_fast_extState(state, static_cast<const char*>(content), static_cast<char*>(out),
                                       static_cast<int>(length), static_cast<int>(limit), 1);
    return n > 0 ? static_cast<size_t>(n) : 0;
}

bool decode(Codec codec, const void* stored, size_t size, void* content, size_t length,
            void* scratch) noexcept {
    void* plain = shuffles(codec) ? scratch : content;
    if (is_zstd(codec)) {
        if (ZSTD_decompress(plain, length, stored, size) != length) return false;
    } else if (LZ4_decompress_safe(static_cast<const char*>(stored), static_cast<char*>(plain),
                                   static_cast<int>(size),
                                   static_cast<int>(length)) != static_cast<int>(length)) {
        return false;
    }
    if (shuffles(codec)) unshuffle(plain, content, length);
    return true;
}

}  // namespace fermata::image
