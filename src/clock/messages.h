// Messages of the collective clock (docs/formats/clock-messages.md) between RankClock in every rank,
// clock::Node in the node daemon and clock::Root in the root (tree.h); agents only carry them, inside of
// wire::Clock. A writer and a reader of one grammar. The reader trusts nothing: after any malformed field
// ok() stays false and every value reads as zero. Usable on the rank side (no malloc, no exceptions).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "clock/types.h"

namespace fermata::clock {

// No message is longer; larger tables travel in parts. Fits any frame of the wire.
inline constexpr size_t kMaxMessage = size_t{32} * 1024;
inline constexpr uint8_t kMessageVersion = 3;
// A writer keeps this many bytes for what follows a full table.
inline constexpr size_t kHeaderBytes = 8;
inline constexpr size_t kPartBytes = 12;
inline constexpr size_t kEntryBytes = 44;
inline constexpr size_t kRunBytes = 8;

enum class Kind : uint8_t {
    // down
    intent = 1,   // prepare epoch e
    targets = 2,  // a part of the target table
    news = 3,     // version v: raises, demands, licences, revocations
    freeze = 4,   // the safe state is declared
    // up
    report = 16,  // a part of what this rank (or subtree) has begun and is obliged to
    raise = 17,
    demand = 18,
    licence = 19,
    revoke = 20,
    safe = 21,
};

// Bits in the head of a table: of some rank below (report), of some rank of the job (targets).
inline constexpr uint32_t kSynchronousSends = 1;  // it has sent in synchronous mode

// Kinds of items in a `news` message.
enum class News : uint32_t { target = 1, channel = 2, licence = 3, revoke = 4 };

// The rank that stands for the root in licences of the last resort.
inline constexpr Rank kRootRank = -1;

struct Header {
    Kind kind;
    Epoch epoch;
};

// World ranks first, first+1, ... first+count-1.
struct Run {
    Rank first;
    int32_t count;
    bool operator==(const Run&) const = default;
};

// One communicator in a report, in the targets, in a raise or in news. `runs` is given only when the other
// members may not know the uid; a long list is spread over several entries of the same uid (ranks = 0 in all
// but one).
struct Entry {
    Uid uid{};
    Instance target = 0;         // report: highest obligation; targets, raise, news: T
    Instance least_obliged = 0;  // report: lowest obligation of a reporting rank
    Instance least_entered = 0;  // report: lowest count of calls begun
    uint32_t ranks = 0;          // report, targets: how many members have reported
    uint32_t size = 0;           // members
    uint32_t run_count = 0;
    const uint8_t* run_bytes = nullptr;  // in the message

    Run run(uint32_t i) const {
        Run r;
        memcpy(&r.first, run_bytes + i * kRunBytes, 4);
        memcpy(&r.count, run_bytes + i * kRunBytes + 4, 4);
        return r;
    }
    bool names(Rank rank) const {
        for (uint32_t i = 0; i < run_count; i++) {
            Run r = run(i);
            if (rank >= r.first && rank - r.first < r.count) return true;
        }
        return false;
    }
};

class Writer {
  public:
    Writer(void* bytes, size_t capacity) : bytes_(static_cast<uint8_t*>(bytes)), capacity_(capacity) {}
    Writer& header(Kind kind, Epoch epoch) {
        put<uint8_t>(kMessageVersion);
        put(static_cast<uint8_t>(kind));
        put<uint16_t>(0);
        return u32(epoch);
    }
    Writer& u32(uint32_t value) { return put(value); }
    Writer& u64(uint64_t value) { return put(value); }
    Writer& rank(Rank value) { return put(static_cast<uint32_t>(value)); }
    // The fixed part; `run_count` runs follow.
    Writer& entry(const Entry& e) {
        u64(static_cast<uint64_t>(e.uid)).u64(e.target).u64(e.least_obliged).u64(e.least_entered);
        return u32(e.ranks).u32(e.size).u32(e.run_count);
    }
    Writer& run(Run r) { return rank(r.first).rank(r.count); }
    // Overwrites a field written before.
    void patch_u32(size_t at, uint32_t value) { memcpy(bytes_ + at, &value, 4); }

    size_t size() const { return size_; }
    size_t room() const { return capacity_ - size_; }
    bool fits() const { return !overflow_; }
    const uint8_t* bytes() const { return bytes_; }

  private:
    template <class T>
    Writer& put(T value) {
        static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are copied as they lie in memory");
        if (room() < sizeof value) {
            overflow_ = true;
            return *this;
        }
        memcpy(bytes_ + size_, &value, sizeof value);
        size_ += sizeof value;
        return *this;
    }
    uint8_t* bytes_;
    size_t capacity_;
    size_t size_ = 0;
    bool overflow_ = false;
};

class Reader {
  public:
    Reader(const void* bytes, size_t size) : at_(static_cast<const uint8_t*>(bytes)), left_(size) {
        if (size > kMaxMessage) fail();
    }
    // False: too short, or a version or kind this build does not know.
    bool header(Header* out);
    uint32_t u32() { return get<uint32_t>(); }
    uint64_t u64() { return get<uint64_t>(); }
    Rank rank() { return static_cast<Rank>(get<uint32_t>()); }
    bool entry(Entry* out);
    bool ok() const { return ok_; }
    bool finished() const { return ok_ && left_ == 0; }

  private:
    template <class T>
    T get() {
        T value{};
        if (left_ < sizeof value) {
            fail();
            return value;
        }
        memcpy(&value, at_, sizeof value);
        at_ += sizeof value;
        left_ -= sizeof value;
        return value;
    }
    void fail() {
        ok_ = false;
        left_ = 0;
    }
    const uint8_t* at_;
    size_t left_;
    bool ok_ = true;
};

}  // namespace fermata::clock
