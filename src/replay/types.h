// The words of the message log as types: numbers that cannot be taken for each other, channels, patterns.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "base/rank.h"

namespace fermata::replay {

enum class Uid : uint64_t {};        // a communicator, the same number in all its members
enum class Tag : int32_t {};         // of a message
enum class MessageNo : uint64_t {};  // the n-th message of a channel, from 1; 0 = none yet
enum class Instance : uint64_t {};   // the n-th collective call on a communicator, from 1; 0 = none yet
enum class Ord : uint64_t {};        // place of a send among all sends of a rank
enum class CallNo : uint64_t {};     // the n-th MPI call of a rank
enum class RequestNo : uint64_t {};  // the n-th operation that a rank has started; the same in both copies
enum class Position : uint64_t {};   // so many records of a stream
enum class Epoch : uint32_t {};      // so many recoveries of a job

template <class N>
concept Counts = std::is_enum_v<N> && std::is_unsigned_v<std::underlying_type_t<N>>;
template <Counts N>
constexpr uint64_t value(N n) {
    return static_cast<uint64_t>(n);
}
template <Counts N>
constexpr N next(N n) {
    return static_cast<N>(value(n) + 1);
}
template <Counts N>
constexpr N previous(N n) {
    return static_cast<N>(value(n) - 1);
}
template <Counts N>
constexpr N& operator++(N& n) {
    return n = next(n);
}

// Messages of one channel are consumed in the order in which they were sent.
struct Channel {
    Uid comm;
    Rank source, destination;
    Tag tag;
    auto operator<=>(const Channel&) const = default;
};

// The sender of a message, and its tag.
struct Envelope {
    Rank source;
    Tag tag;
    auto operator<=>(const Envelope&) const = default;
};

// The messages that a receive or a probe takes; nothing = any.
struct Pattern {
    Uid comm;
    std::optional<Rank> source;
    std::optional<Tag> tag;
    bool takes(Uid on, const Envelope& m) const {
        return on == comm && (!source || *source == m.source) && (!tag || *tag == m.tag);
    }
};

}  // namespace fermata::replay
