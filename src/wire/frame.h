// A frame is one message as bytes; this header writes and reads frames:
//
//     u32 length of the payload | u16 type | u16 version | payload | tag (only on sealed channels, 16 bytes)
//
// all little-endian. The decoder trusts nothing: a length above the limit, an unknown type or version, a
// field that runs over the end, bytes left over, or a wrong tag breaks the channel for good. It never
// reserves memory because a length field says so: it holds only what was received.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "wire/message.h"

namespace fermata::wire {

inline constexpr size_t kHeaderSize = 8;
inline constexpr size_t kTagSize = 16;
inline constexpr uint32_t kMaxPayload = 64u << 20;

using Tag = std::array<std::byte, kTagSize>;

// Makes and checks the tags of one direction of a channel; counts frames, so that none can be replayed,
// dropped or reordered unseen.
class Seal {
  public:
    virtual ~Seal() = default;
    virtual Tag next(const std::byte* frame, size_t size) = 0;
};

// The frame of `message`, ready to be sent. Throws Error when it would be longer than kMaxPayload.
Bytes encode(const Message& message, Seal* seal = nullptr);

// The message of a frame that came inside of another one; none when it is not exactly one.
std::optional<Message> unwrapped(const Bytes& frame);

// Stream of bytes in, messages out. After broken() nothing more comes out.
class Decoder {
  public:
    // Limit for peers that need little (an agent's socket, a handshake).
    explicit Decoder(uint32_t max_payload = kMaxPayload, Seal* seal = nullptr)
        : max_payload_(max_payload), seal_(seal) {}

    void allow(uint32_t max_payload) { max_payload_ = max_payload; }

    void feed(const void* data, size_t size);
    std::optional<Message> next();
    bool broken() const { return !error_.empty(); }
    const std::string& error() const { return error_; }
    // Nothing is left that is not a whole frame yet.
    bool empty() const { return start_ == buffer_.size(); }
    // The bytes that are left.
    std::string rest() const {
        return {reinterpret_cast<const char*>(buffer_.data()) + start_, buffer_.size() - start_};
    }

  private:
    std::optional<Message> give_up(std::string why);
    uint32_t max_payload_;
    Seal* seal_;
    Bytes buffer_;
    size_t start_ = 0;  // first byte of buffer_ not yet consumed
    std::string error_;
};

}  // namespace fermata::wire
