// The form: a word for the kind, then the fields in their order, little-endian; lists behind their length.
// One value has one form, and a reader takes no other: what it takes is a state that a machine can be in.
#include "replay/wire_form.h"

#include <algorithm>
#include <cstring>

namespace fermata::replay {
namespace {

constexpr uint32_t kSaid = 0x31534c46, kOrders = 0x314f4c46;  // "FLS1", "FLO1"
// Instances and messages: loops over them end.
constexpr uint64_t kMost = uint64_t{1} << 56;

class Writer {
  public:
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
    Bytes take() { return std::move(bytes_); }

  private:
    void put(uint64_t n, int size) {
        for (int i = 0; i < size; i++) bytes_.push_back(static_cast<uint8_t>(n >> 8 * i));
    }
    Bytes bytes_;
};

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

template <typename T>
bool ascending(const Vec<T>& all) {
    return std::adjacent_find(all.begin(), all.end(), [](T a, T b) { return !(a < b); }) == all.end();
}

Planned planned_from(Reader& in) {
    Planned one{in.number<Instance>(), {}};
    in.ranks(&one.told);
    in.list(&one.made, 8, [&] { return in.uid(); });
    in.require(ascending(one.told));
    return one;
}

}  // namespace

Bytes wire_form(const Said& said) {
    Writer out;
    out.u32(kSaid);
    out.rank(said.rank);
    out.consumed(said.consumed);
    out.list(said.comms, [&](const CommCounts& comm) {
        out.head(comm);
        out.count(comm.told.prefix());
        out.list(comm.told.beyond(), [&](Instance i) { out.count(i); });
        out.count(comm.entered);
    });
    return out.take();
}

Bytes wire_form(const Orders& orders) {
    Writer out;
    out.u32(kOrders);
    out.u32(static_cast<uint32_t>(orders.epoch));
    out.consumed(orders.known);
    out.list(orders.comms, [&](const CommOrders& comm) {
        out.head(comm);
        out.list(comm.plan, [&](const Planned& one) {
            out.count(one.instance);
            out.ranks(one.told);
            out.list(one.made, [&](Uid uid) { out.count(uid); });
        });
    });
    return out.take();
}

std::optional<Said> said_from(std::span<const uint8_t> bytes, uint32_t ranks) {
    Reader in(bytes, ranks);
    in.require(in.u32() == kSaid);
    Said said{in.rank(), {}, {}};
    in.consumed(&said.consumed);
    in.list(&said.comms, 48, [&] {
        CommCounts comm;
        in.head(&comm);
        comm.told = in.told();
        comm.entered = in.number<Instance>();
        return comm;
    });
    if (!in.ended()) return {};
    return said;
}

std::optional<Orders> orders_from(std::span<const uint8_t> bytes, uint32_t ranks) {
    Reader in(bytes, ranks);
    in.require(in.u32() == kOrders);
    Orders orders;
    orders.epoch = static_cast<Epoch>(in.u32());
    in.consumed(&orders.known);
    in.list(&orders.comms, 32, [&] {
        CommOrders comm;
        in.head(&comm);
        in.list(&comm.plan, 16, [&] { return planned_from(in); });
        in.require(
            std::adjacent_find(comm.plan.begin(), comm.plan.end(), [](const Planned& a, const Planned& b) {
                return a.instance >= b.instance;
            }) == comm.plan.end());
        return comm;
    });
    if (!in.ended()) return {};
    return orders;
}

}  // namespace fermata::replay
