// Handshake proves that node daemon and root, joined by TCP, both know the job's key.
//
//     node -> root   "FMTA" | u16 version | nonce_node (32)
//     root -> node   nonce_root (32) | proof_root (32)
//     node -> root   proof_node (32)
//
// A proof is HMAC-SHA-512-256 with the job's key over (role, both nonces); each side shows that it knows the
// key before the other believes a frame. Every frame after that carries a tag under a key of its own per
// direction, derived from the nonces: frames can be neither forged, replayed nor reordered. Nothing is
// encrypted: the tree carries no data of the application, and images travel as they are (src/transfer).
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "wire/bulk.h"
#include "wire/frame.h"

namespace fermata::wire {

using Key = std::array<unsigned char, 32>;
using Nonce = std::array<unsigned char, 32>;

Key random_key();
std::string to_hex(const Key& key);
Key key_from_hex(const std::string& hex);  // throws Error
// `bytes` random bytes as hex, for job ids.
std::string random_id(size_t bytes);

enum class Role { node, root };

// One side of the handshake, without I/O: bytes in, bytes out. A peer that fails is simply dropped; error()
// says why for the log.
class Handshake {
  public:
    Handshake(Role role, const Key& key);
    ~Handshake();  // the key does not stay behind
    Handshake(const Handshake&) = default;
    Handshake& operator=(const Handshake&) = default;

    // Bytes to send first (node), or nothing (root).
    std::string hello();
    // Takes received bytes; returns what to send now. Consumes no byte beyond the handshake: see rest().
    std::string feed(const void* data, size_t size);

    bool done() const { return done_; }
    bool failed() const { return !error_.empty(); }
    const std::string& error() const { return error_; }
    // Bytes received after the end of the handshake (the peer's first frames).
    const std::string& rest() const { return in_; }

    // Valid once done().
    std::unique_ptr<Seal> outgoing() const;
    std::unique_ptr<Seal> incoming() const;
    // Instead of those, on connections that carry images.
    BulkSeal bulk_outgoing() const;
    BulkSeal bulk_incoming() const;

  private:
    std::string proof(const char* label) const;
    std::unique_ptr<Seal> seal(const char* label) const;
    Role role_;
    Key key_;
    Nonce mine_{}, node_{}, root_{};
    std::string in_;
    std::string error_;
    bool heard_ = false;  // root: the node's hello was read
    bool done_ = false;
};

}  // namespace fermata::wire
