// Fields as bytes and back, little-endian; lists behind their length. A reader takes one form only.
#pragma once

#include <cstring>
#include <span>

#include "replay/exchange.h"

namespace fermata::replay {

class Writer {
  public:
    void reserve(size_t bytes) { bytes_.reserve(bytes); }
    void u32(uint32_t n) { put(n, 4); }
    void u64(uint64_t n) { put(n, 8); }
    template <Counts N>
    void count(N n) {
        u64(value(n));
    }
    template <typename T, typename F>
    void list(const Vec<T>& all, F&& one) {
        u32(static_cast<uint32_t>(all.size()));
        for (const T& each : all) one(each);
    }
    void rank(Rank rank) { u32(rank.number()); }
    void ranks(const Vec<Rank>& all) {
        list(all, [&](Rank one) { rank(one); });
    }
    void consumed(const Vec<Consumed>& all) {
        list(all, [&](const Consumed& one) {
            count(one.channel.comm);
            rank(one.channel.source);
            rank(one.channel.destination);
            u32(static_cast<uint32_t>(one.channel.tag));
            count(one.count);
        });
    }
    template <class Comm>
    void head(const Comm& comm) {
        count(comm.uid);
        count(comm.parent);
        count(comm.made_as);
        ranks(comm.members);
    }
    void bytes(const Bytes& data) {
        u64(data.size());
        bytes_.insert(bytes_.end(), data.begin(), data.end());
    }
    Bytes take() { return std::move(bytes_); }

  private:
    void put(uint64_t n, size_t size) {
        const size_t at = bytes_.size();
        bytes_.resize(at + size);
        for (size_t i = 0; i < size; i++) bytes_[at + i] = static_cast<uint8_t>(n >> 8 * i);
    }
    Bytes bytes_;
};

// Instances and messages: loops over them end.
inline constexpr uint64_t kMost = uint64_t{1} << 56;

// After the first field that is not good every one reads as zero, and good() stays false.
class Reader {
  public:
    Reader(std::span<const uint8_t> bytes, uint32_t ranks) : left_(bytes), ranks_(ranks) {}

    bool good() const { return good_; }
    bool ended() const { return good_ && left_.empty(); }
    void require(bool holds) { good_ = good_ && holds; }

    uint32_t u32() { return static_cast<uint32_t>(get(4)); }
    template <Counts N>
    N number() {  // of an instance, of a message
        uint64_t n = get(8);
        require(n < kMost);
        return static_cast<N>(good_ ? n : 0);
    }
    Uid uid() { return static_cast<Uid>(get(8)); }
    Rank rank() {
        const auto rank = Rank::among(u32(), ranks_);
        require(rank.has_value());
        return rank.value_or(Rank(0));
    }
    // `least`: bytes of the shortest entry, so that a length needs no more memory than its bytes are.
    template <typename T, typename F>
    void list(Vec<T>* all, size_t least, F&& one) {
        uint32_t length = u32();
        require(length <= left_.size() / least);
        if (good_) all->reserve(length);
        for (uint32_t i = 0; good_ && i < length; i++) all->push_back(one());
    }
    void ranks(Vec<Rank>* all) {
        list(all, 4, [&] { return rank(); });
    }
    void consumed(Vec<Consumed>* all) {
        list(all, 28, [&] {
            Uid comm = uid();
            Rank source = rank(), destination = rank();
            Tag tag = static_cast<Tag>(u32());
            return Consumed{{comm, source, destination, tag}, number<MessageNo>()};
        });
    }
    template <class Comm>
    void head(Comm* comm) {
        comm->uid = uid();
        comm->parent = uid();
        comm->made_as = number<Instance>();
        ranks(&comm->members);
    }
    Bytes bytes() {
        const uint64_t size = get(8);
        require(size <= left_.size());
        if (!good_) return {};
        Bytes data(left_.begin(), left_.begin() + static_cast<ptrdiff_t>(size));
        left_ = left_.subspan(size);
        return data;
    }
    uint64_t u64() { return get(8); }
    ToldSet told() {
        ToldSet set;
        const Instance prefix = number<Instance>();
        Vec<Instance> beyond;
        list(&beyond, 8, [&] { return number<Instance>(); });
        require(set.become(prefix, std::move(beyond)));
        return set;
    }

  private:
    uint64_t get(size_t size) {
        require(left_.size() >= size);
        if (!good_) return 0;
        uint64_t n = 0;
        for (size_t i = 0; i < size; i++) n |= uint64_t{left_[i]} << 8 * i;
        left_ = left_.subspan(size);
        return n;
    }
    std::span<const uint8_t> left_;
    uint32_t ranks_;
    bool good_ = true;
};

}  // namespace fermata::replay
