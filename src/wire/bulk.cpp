#include "wire/bulk.h"

#include <sodium.h>

#include <cstring>

#include "base/invariant.h"

namespace fermata::wire {

static_assert(crypto_onetimeauth_BYTES == kTagSize && crypto_stream_chacha20_KEYBYTES == 32 &&
              crypto_stream_chacha20_NONCEBYTES == 8);

BulkSeal::BulkSeal(const std::string& secret) {
    always(secret.size() == secret_.size(), "a secret of another length");
    std::memcpy(secret_.data(), secret.data(), secret_.size());
}

BulkSeal::~BulkSeal() { sodium_memzero(secret_.data(), secret_.size()); }

// A key of Poly1305 must never be used twice: it comes of the frame's number.
Tag BulkSeal::next(std::span<const std::byte> head, std::span<const std::byte> body) {
    unsigned char number[crypto_stream_chacha20_NONCEBYTES], once[crypto_onetimeauth_KEYBYTES];
    for (size_t i = 0; i < sizeof number; ++i) number[i] = static_cast<unsigned char>(count_ >> (8 * i));
    always(++count_ != 0, "as many frames as there are keys for");
    crypto_stream_chacha20(once, sizeof once, number, secret_.data());
    crypto_onetimeauth_state state;
    crypto_onetimeauth_init(&state, once);
    for (std::span<const std::byte> part : {head, body})
        crypto_onetimeauth_update(&state, reinterpret_cast<const unsigned char*>(part.data()), part.size());
    Tag tag;
    crypto_onetimeauth_final(&state, reinterpret_cast<unsigned char*>(tag.data()));
    sodium_memzero(once, sizeof once);
    return tag;
}

bool same(const Tag& a, const Tag& b) { return sodium_memcmp(a.data(), b.data(), a.size()) == 0; }

}  // namespace fermata::wire
