#include "image/cipher.h"

#include <sodium.h>

#include <cstring>

#include "image/image.h"

namespace fermata::image {
namespace {

// Kinds of encrypted messages: one number each for the nonce and for the associated data.
enum Kind : uint64_t { block_message = 1, index_message = 2 };

struct Nonce {
    uint64_t kind, offset, zero = 0;
};
static_assert(sizeof(Nonce) == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES);
static_assert(sizeof(Tag) == crypto_aead_xchacha20poly1305_ietf_ABYTES);

struct BlockFacts {
    uint64_t offset;
    uint32_t stored, length, codec, zero;
};
BlockFacts facts_of(const Block& block) {
    return {block.offset, block.stored, block.length, static_cast<uint32_t>(block.codec), 0};
}

const unsigned char* bytes(const void* p) { return static_cast<const unsigned char*>(p); }

Tag seal_message(const unsigned char* key, const Nonce& nonce, const void* in, void* out, size_t size,
                 const void* facts, size_t facts_size) noexcept {
    Tag tag;
    ::crypto_aead_xchacha20poly1305_ietf_encrypt_detached(static_cast<unsigned char*>(out), tag.bytes.data(),
                                                          nullptr, bytes(in), size, bytes(facts), facts_size,
                                                          nullptr, bytes(&nonce), key);
    return tag;
}

bool open_message(const unsigned char* key, const Nonce& nonce, void* data, size_t size, const Tag& tag,
                  const void* facts, size_t facts_size) noexcept {
    // No message is empty; libsodium wants none without an address.
    return size > 0 && ::crypto_aead_xchacha20poly1305_ietf_decrypt_detached(
                           static_cast<unsigned char*>(data), nullptr, bytes(data), size, tag.bytes.data(),
                           bytes(facts), facts_size, bytes(&nonce), key) == 0;
}

}  // namespace

Salt random_salt() {
    Salt salt;
    ::randombytes_buf(salt.data(), salt.size());
    return salt;
}

FileKey::FileKey(const Key& key, const char* purpose, const void* subject, size_t size) : present_(true) {
    key.derive(purpose, subject, size, bytes_);
}

FileKey::~FileKey() {
    if (present_) ::sodium_memzero(bytes_.data(), bytes_.size());
}

FileKey FileKey::of_image(const Key& key, const void* header, size_t size) {
    return {key, "image", header, size};
}

FileKey FileKey::of_text(const Key& key, const Checksum& name) {
    return {key, "text", name.bytes.data(), name.bytes.size()};
}

Tag FileKey::seal(const void* in, void* out, const Block& block) const noexcept {
    BlockFacts facts = facts_of(block);
    return seal_message(bytes_.data(), {block_message, block.offset}, in, out, block.stored, &facts,
                        sizeof facts);
}

bool FileKey::open(void* data, const Block& block) const noexcept {
    BlockFacts facts = facts_of(block);
    return open_message(bytes_.data(), {block_message, block.offset}, data, block.stored, block.tag, &facts,
                        sizeof facts);
}

Tag FileKey::seal_index(void* data, size_t size, const void* header, size_t header_size) const noexcept {
    return seal_message(bytes_.data(), {index_message, 0}, data, data, size, header, header_size);
}

bool FileKey::open_index(void* data, size_t size, const Tag& tag, const void* header,
                         size_t header_size) const noexcept {
    return open_message(bytes_.data(), {index_message, 0}, data, size, tag, header, header_size);
}

TextName::TextName(const Key& key) {
    static_assert(sizeof(crypto_generichash_state) <= sizeof(state_));
    std::array<uint8_t, 32> secret;
    key.derive("text name", nullptr, 0, secret);
    ::crypto_generichash_init(reinterpret_cast<crypto_generichash_state*>(state_.data()), secret.data(),
                              secret.size(), sizeof(Checksum));
    ::sodium_memzero(secret.data(), secret.size());
}

TextName::~TextName() { ::sodium_memzero(state_.data(), state_.size()); }

void TextName::add(const void* data, size_t size) {
    ::crypto_generichash_update(reinterpret_cast<crypto_generichash_state*>(state_.data()), bytes(data),
                                size);
}

Checksum TextName::name() {
    Checksum name;
    ::crypto_generichash_final(reinterpret_cast<crypto_generichash_state*>(state_.data()), name.bytes.data(),
                               name.bytes.size());
    return name;
}

}  // namespace fermata::image
