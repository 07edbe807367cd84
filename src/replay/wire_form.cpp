// The form: a word for the kind, then the fields in their order, little-endian; lists behind their length.
// One value has one form, and a reader takes no other: what it takes is a state that a machine can be in.
#include "replay/wire_form.h"

#include <algorithm>

#include "replay/form.h"

namespace fermata::replay {
namespace {

constexpr uint32_t kSaid = 0x31534c46, kOrders = 0x314f4c46;  // "FLS1", "FLO1"
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
