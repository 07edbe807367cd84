#include "wire/auth.h"

#include <sodium.h>

#include <cstring>

#include "base/error.h"
#include "base/invariant.h"

namespace fermata::wire {
namespace {

constexpr size_t kProof = crypto_auth_BYTES;
static_assert(kProof == 32 && crypto_auth_KEYBYTES == sizeof(Key));
const std::string kMagic = "FMTA";
constexpr size_t kNodeHello = 4 + 2 + sizeof(Nonce);

void start_sodium() {
    if (sodium_init() < 0) fail("libsodium cannot start: no source of random numbers");
}

// Keyed BLAKE2b over (frame counter, frame).
class KeyedSeal : public Seal {
  public:
    explicit KeyedSeal(const std::string& key) : key_(key) {
        always(key_.size() == kProof, "a seal with a key of another length");
    }
    Tag next(const std::byte* frame, size_t size) override {
        unsigned char count[8];
        for (int i = 0; i < 8; ++i) count[i] = static_cast<unsigned char>(count_ >> (8 * i));
        ++count_;
        Tag tag;
        crypto_generichash_state state;
        crypto_generichash_init(&state, reinterpret_cast<const unsigned char*>(key_.data()), key_.size(),
                                kTagSize);
        crypto_generichash_update(&state, count, sizeof count);
        crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(frame), size);
        crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(tag.data()), kTagSize);
        return tag;
    }

  private:
    std::string key_;
    uint64_t count_ = 0;
};

template <class Array>
std::string text(const Array& bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

Key random_key() {
    start_sodium();
    Key key;
    randombytes_buf(key.data(), key.size());
    return key;
}

std::string to_hex(const Key& key) {
    char hex[2 * sizeof(Key) + 1];
    sodium_bin2hex(hex, sizeof hex, key.data(), key.size());
    return hex;
}

Key key_from_hex(const std::string& hex) {
    Key key;
    size_t size = 0;
    if (sodium_hex2bin(key.data(), key.size(), hex.data(), hex.size(), nullptr, &size, nullptr) != 0 ||
        size != key.size())
        fail("the job's key in FERMATA_KEY is damaged");
    return key;
}

std::string random_id(size_t bytes) {
    start_sodium();
    std::string raw(bytes, '\0'), hex(2 * bytes + 1, '\0');
    randombytes_buf(raw.data(), bytes);
    sodium_bin2hex(hex.data(), hex.size(), reinterpret_cast<unsigned char*>(raw.data()), bytes);
    hex.pop_back();
    return hex;
}

Handshake::Handshake(Role role, const Key& key) : role_(role), key_(key) {
    start_sodium();
    randombytes_buf(mine_.data(), mine_.size());
    (role == Role::node ? node_ : root_) = mine_;
}

Handshake::~Handshake() { sodium_memzero(key_.data(), key_.size()); }

std::string Handshake::proof(const char* label) const {
    std::string message = std::string(label) + text(node_) + text(root_);
    std::string mac(kProof, '\0');
    crypto_auth(reinterpret_cast<unsigned char*>(mac.data()),
                reinterpret_cast<const unsigned char*>(message.data()), message.size(), key_.data());
    return mac;
}

std::string Handshake::hello() {
    always(!done_ && in_.empty(), "a handshake that begins twice");
    if (role_ == Role::root) return {};
    char version[2] = {static_cast<char>(kWireVersion & 0xff), static_cast<char>(kWireVersion >> 8)};
    return kMagic + std::string(version, 2) + text(mine_);
}

std::string Handshake::feed(const void* data, size_t size) {
    if (failed()) return {};
    in_.append(static_cast<const char*>(data), size);
    if (done_) return {};
    auto same = [](const std::string& a, const char* b) { return sodium_memcmp(a.data(), b, a.size()) == 0; };
    if (role_ == Role::node) {
        if (in_.size() < sizeof(Nonce) + kProof) return {};
        std::memcpy(root_.data(), in_.data(), sizeof(Nonce));
        if (!same(proof("root"), in_.data() + sizeof(Nonce))) {
            error_ = "the root does not know this job's key";
            return {};
        }
        in_.erase(0, sizeof(Nonce) + kProof);
        done_ = true;
        return proof("node");
    }
    std::string answer;
    if (!heard_) {
        if (in_.size() < kNodeHello) return {};
        unsigned version = static_cast<unsigned char>(in_[4]) | static_cast<unsigned char>(in_[5]) << 8;
        if (in_.compare(0, 4, kMagic) != 0) {
            error_ = "the peer is no node daemon";
            return {};
        }
        if (version != kWireVersion) {
            error_ =
                fmt::format("the node daemon speaks wire version {}, this build {}", version, kWireVersion);
            return {};
        }
        std::memcpy(node_.data(), in_.data() + 6, sizeof(Nonce));
        in_.erase(0, kNodeHello);
        heard_ = true;
        answer = text(root_) + proof("root");
    }
    if (in_.size() >= kProof) {
        if (!same(proof("node"), in_.data())) {
            error_ = "the node daemon does not know this job's key";
            return {};
        }
        in_.erase(0, kProof);
        done_ = true;
    }
    return answer;
}

std::unique_ptr<Seal> Handshake::seal(const char* label) const {
    always(done_ && !failed(), "a seal before the other end has proved itself");
    return std::make_unique<KeyedSeal>(proof(label));
}
std::unique_ptr<Seal> Handshake::outgoing() const { return seal(role_ == Role::node ? "up" : "down"); }
std::unique_ptr<Seal> Handshake::incoming() const { return seal(role_ == Role::node ? "down" : "up"); }
BulkSeal Handshake::bulk_outgoing() const {
    always(done_ && !failed(), "a seal before the other end has proved itself");
    return BulkSeal(proof(role_ == Role::node ? "bulk up" : "bulk down"));
}
BulkSeal Handshake::bulk_incoming() const {
    always(done_ && !failed(), "a seal before the other end has proved itself");
    return BulkSeal(proof(role_ == Role::node ? "bulk down" : "bulk up"));
}

}  // namespace fermata::wire
