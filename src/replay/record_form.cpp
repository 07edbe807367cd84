#include "replay/record_form.h"

#include <variant>

#include "replay/form.h"

namespace fermata::replay {
namespace {

constexpr uint32_t kRecord = 0x31524c46;  // "FLR1"
enum class Sort : uint32_t { message, call, creation };

void put_item(Writer& out, const MessageItem& item) {
    out.u32(static_cast<uint32_t>(Sort::message));
    out.count(item.comm);
    out.rank(item.from.source);
    out.u32(static_cast<uint32_t>(item.from.tag));
    out.count(item.request);
    out.bytes(item.bytes);
}
void put_item(Writer& out, const CollectiveItem& item) {
    out.u32(static_cast<uint32_t>(item.made ? Sort::creation : Sort::call));
    out.count(item.comm);
    out.count(item.instance);
    out.count(item.request);
    out.u32(item.frees ? 1 : 0);
    if (item.made) {
        out.count(item.made->uid);
        out.ranks(item.made->members);
    }
    out.bytes(item.result);
}

size_t bytes_of(const MessageItem& item) { return item.bytes.size(); }
size_t bytes_of(const CollectiveItem& item) { return item.result.size(); }

// About what a record takes: it is written for each call, and shall not grow step by step.
size_t room_for(const Record& record) {
    size_t room = 64 + 8 * record.outcome.told.size() + record.outcome.value.size();
    for (const auto& item : record.items)
        room += 48 + std::visit([](const auto& one) { return bytes_of(one); }, item);
    return room;
}

MessageItem message_from(Reader& in) {
    const Uid comm = in.uid();
    const Rank source = in.rank();
    const Tag tag = static_cast<Tag>(in.u32());
    const auto request = in.number<RequestNo>();
    return {comm, {source, tag}, request, in.bytes()};
}
CollectiveItem call_from(Reader& in, bool creation) {
    const Uid comm = in.uid();
    const auto instance = in.number<Instance>();
    CollectiveItem item{comm, instance, in.number<RequestNo>(), {}, {}, in.u32() != 0};
    if (creation) {
        item.made = Made{in.uid(), {}};
        in.ranks(&item.made->members);
    }
    item.result = in.bytes();
    return item;
}

}  // namespace

Bytes wire_form(const Record& record) {
    Writer out;
    out.reserve(room_for(record));
    out.u32(kRecord);
    out.count(record.call);
    out.u32(static_cast<uint32_t>(record.outcome.kind));
    out.u32((record.outcome.flag ? 1 : 0) | (record.determinant ? 2 : 0) | (record.outcome.probed ? 4 : 0));
    out.u64(static_cast<uint64_t>(record.outcome.index));
    out.u64(record.digest);
    if (const auto& probed = record.outcome.probed) {
        out.count(probed->comm);
        out.rank(probed->from.source);
        out.u32(static_cast<uint32_t>(probed->from.tag));
    }
    out.list(record.outcome.told, [&](RequestNo no) { out.count(no); });
    if (record.outcome.kind == CallKind::value) out.bytes(record.outcome.value);
    out.list(record.items,
             [&](const auto& item) { std::visit([&](const auto& one) { put_item(out, one); }, item); });
    return out.take();
}

std::optional<Record> record_from(std::span<const uint8_t> bytes, uint32_t ranks) {
    Reader in(bytes, ranks);
    in.require(in.u32() == kRecord);
    Record record{in.number<CallNo>(), {}, {}, false};
    const uint32_t kind = in.u32(), flags = in.u32();
    in.require(kind <= static_cast<uint32_t>(CallKind::harvest) && flags < 8);
    record.outcome.kind = static_cast<CallKind>(kind);
    record.outcome.flag = (flags & 1) != 0;
    record.determinant = (flags & 2) != 0;
    record.outcome.index = static_cast<int64_t>(in.u64());
    record.digest = in.u64();
    if ((flags & 4) != 0) {
        const Uid comm = in.uid();
        const Rank source = in.rank();
        record.outcome.probed = Probed{comm, {source, static_cast<Tag>(in.u32())}};
    }
    in.list(&record.outcome.told, 8, [&] { return in.number<RequestNo>(); });
    if (record.outcome.kind == CallKind::value) record.outcome.value = in.bytes();
    in.list(&record.items, 28, [&]() -> replay::Item {
        const uint32_t sort = in.u32();
        in.require(sort <= static_cast<uint32_t>(Sort::creation));
        if (sort == static_cast<uint32_t>(Sort::message)) return message_from(in);
        return call_from(in, sort == static_cast<uint32_t>(Sort::creation));
    });
    if (!in.ended()) return {};
    return record;
}

}  // namespace fermata::replay
