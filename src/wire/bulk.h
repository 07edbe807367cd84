// BulkSeal makes and checks the tags of frames that carry much data: Poly1305 under a key of its own for each
// frame, several times as fast as the tags of messages (frame.h). Whoever has not got the job's key can
// neither forge nor change such a frame, nor drop, repeat or reorder one.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "wire/frame.h"

namespace fermata::wire {

class BulkSeal {
  public:
    // `secret`: 32 bytes, of one direction of one connection.
    explicit BulkSeal(const std::string& secret);
    ~BulkSeal();
    BulkSeal(const BulkSeal&) = default;
    BulkSeal& operator=(const BulkSeal&) = default;

    // The tag of the next frame, which is `head` and then `body`.
    Tag next(std::span<const std::byte> head, std::span<const std::byte> body);

  private:
    std::array<unsigned char, 32> secret_{};
    uint64_t count_ = 0;
};

bool same(const Tag& a, const Tag& b);  // in a time that tells nothing

}  // namespace fermata::wire
