// The channels of a rank: what it has sent on each, with the log of what a hop would lose, and what it has
// consumed from each.
#pragma once

#include <algorithm>

#include "replay/log_use.h"

namespace fermata::replay {

// A message that the program may overwrite and the receiver may still need.
struct Logged {
    MessageNo number;
    Ord ord;
    Bytes bytes;
    std::optional<Spilled> spilled{};  // then there are no bytes here
    bool in_use = false;               // the library sends it from here

    uint64_t held() const { return bytes.size(); }
};

struct Outgoing {
    Channel channel;
    MessageNo sent{};    // the newest number
    MessageNo known{};   // consumed there, as the newest exchange said; may be less than an older one said
    MessageNo stable{};  // consumed there for good: receipts; only grows
    MessageNo taken{};   // ... and some receive has it, not the queue only: what synchronous sends wait for
    Vec<Logged> log{};   // ascending numbers

    void add(Logged message);
    Logged* find(MessageNo number);
    // Drops what is consumed for good and not in use.
    void cut(LogUse* use);
};

struct Incoming {
    Channel channel;
    MessageNo consumed{};  // of those that a record names, or would
    MessageNo stable{};    // of those that a stable record names
    uint64_t pulled = 0;   // behind `consumed`: in the queue, or in receives that no record names yet
    bool touched = false;  // since the last news
    MessageNo counted(bool with_pulled) const {
        return static_cast<MessageNo>(value(consumed) + (with_pulled ? pulled : 0));
    }
};

// A table by channel; entries are made at the first use. References hold until the next first use.
template <class End>
class ChannelTable {
  public:
    End& of(const Channel& channel) {
        if (ends_.size() * 2 >= buckets_.size()) grow();
        uint32_t& bucket = bucket_of(channel);
        if (bucket == kEmpty) {
            bucket = static_cast<uint32_t>(ends_.size());
            ends_.push_back(End{.channel = channel});
        }
        return ends_[bucket];
    }
    const End* find(const Channel& channel) const {
        if (buckets_.empty()) return nullptr;
        uint32_t at = const_cast<ChannelTable*>(this)->bucket_of(channel);
        return at == kEmpty ? nullptr : &ends_[at];
    }
    size_t size() const { return ends_.size(); }
    auto begin() { return ends_.begin(); }
    auto end() { return ends_.end(); }
    auto begin() const { return ends_.begin(); }
    auto end() const { return ends_.end(); }
    void forget(Uid comm) {
        auto gone = [comm](const End& e) { return e.channel.comm == comm; };
        ends_.erase(std::remove_if(ends_.begin(), ends_.end(), gone), ends_.end());
        rebuild(buckets_.size());
    }

  private:
    static constexpr uint32_t kEmpty = UINT32_MAX;
    static uint64_t hash(const Channel& c) {
        uint64_t x = value(c.comm) * 0x9e3779b97f4a7c15u + c.source.number();
        x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u + c.destination.number();
        x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u + static_cast<uint32_t>(c.tag);
        return (x ^ x >> 32) * 0x9e3779b97f4a7c15u >> 20;
    }
    uint32_t& bucket_of(const Channel& channel) {
        size_t mask = buckets_.size() - 1, at = hash(channel) & mask;
        while (buckets_[at] != kEmpty && ends_[buckets_[at]].channel != channel) at = (at + 1) & mask;
        return buckets_[at];
    }
    void grow() { rebuild(buckets_.empty() ? 16 : buckets_.size() * 2); }
    void rebuild(size_t size) {
        buckets_.assign(size, kEmpty);
        for (size_t i = 0; i < ends_.size(); i++) bucket_of(ends_[i].channel) = static_cast<uint32_t>(i);
    }
    Vec<End> ends_;
    Vec<uint32_t> buckets_;  // a power of two of them, at most half in use
};

}  // namespace fermata::replay
