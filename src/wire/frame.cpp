#include "wire/frame.h"

#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "base/invariant.h"
#include "wire/one_of_bodies.h"

namespace fermata::wire {
namespace {

constexpr size_t kUsualFrame = 96;  // most are shorter, seal included

class Writer {
  public:
    explicit Writer(Bytes& out) : out_(out) {}

    template <class... Fields>
    void operator()(const Fields&... fields) {
        (put(fields), ...);
    }

    template <class Number>
    void number(Number value) {
        static_assert(std::is_unsigned_v<Number>);
        std::array<std::byte, sizeof value> bytes;
        for (size_t i = 0; i < sizeof value; ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
        out_.insert(out_.end(), bytes.begin(), bytes.end());
    }

  private:
    void put(uint32_t value) { number(value); }
    void put(uint64_t value) { number(value); }
    void put(int32_t value) { number(static_cast<uint32_t>(value)); }
    void put(Generation value) { number(value.number()); }
    void put(RestartPhase value) { number(static_cast<uint32_t>(value)); }
    void put(Medium value) { number(static_cast<uint32_t>(value)); }
    void put(RankEnd value) { number(static_cast<uint32_t>(value)); }
    void put(Absence value) { number(static_cast<uint32_t>(value)); }
    void put(bool value) { number(static_cast<uint8_t>(value)); }
    void put(const std::string& text) {
        number(static_cast<uint32_t>(text.size()));
        auto* at = reinterpret_cast<const std::byte*>(text.data());
        out_.insert(out_.end(), at, at + text.size());
    }
    void put(const Bytes& bytes) {
        number(static_cast<uint32_t>(bytes.size()));
        out_.insert(out_.end(), bytes.begin(), bytes.end());
    }
    template <class Item>
    void put(const std::vector<Item>& items) {
        number(static_cast<uint32_t>(items.size()));
        for (const Item& item : items) put_item(item);
    }
    void put(const Digest& digest) {
        auto* at = reinterpret_cast<const std::byte*>(digest.data());
        out_.insert(out_.end(), at, at + digest.size());
    }
    void put_item(Generation item) { put(item); }
    void put_item(const std::string& item) { put(item); }
    void put_item(const Bytes& item) { put(item); }
    void put_item(uint64_t item) { put(item); }
    void put_item(int32_t item) { put(item); }
    template <class Item>
    void put_item(const Item& item) {
        const_cast<Item&>(item).each(*this);  // `each` serves both directions
    }
    Bytes& out_;
};

// Reads fields until one does not fit; from then on everything reads as empty and ok() is false.
class Reader {
  public:
    Reader(const std::byte* data, size_t size) : at_(data), left_(size) {}

    template <class... Fields>
    void operator()(Fields&... fields) {
        (get(fields), ...);
    }
    bool ok() const { return ok_; }
    size_t left() const { return left_; }

    template <class Number>
    Number number() {
        Number value = 0;
        if (!take(sizeof value)) return 0;
        for (size_t i = 0; i < sizeof value; ++i)
            value = static_cast<Number>(value | static_cast<Number>(at_[i]) << (8 * i));
        skip(sizeof value);
        return value;
    }

  private:
    bool take(size_t size) {
        if (size > left_) ok_ = false;
        return ok_;
    }
    void skip(size_t size) {
        always(ok_ && size <= left_, "a field that is read behind the end of its frame");
        at_ += size, left_ -= size;
    }

    void get(uint32_t& value) { value = number<uint32_t>(); }
    void get(uint64_t& value) { value = number<uint64_t>(); }
    void get(int32_t& value) { value = static_cast<int32_t>(number<uint32_t>()); }
    void get(Generation& value) {
        value = Generation(number<uint32_t>());
        if (value.number() > Generation::kLast) ok_ = false;
    }
    void get(RestartPhase& value) {
        auto word = number<uint32_t>();
        if (word < static_cast<uint32_t>(RestartPhase::load) ||
            word > static_cast<uint32_t>(kLastRestartPhase))
            ok_ = false;
        else
            value = RestartPhase{word};
    }
    void get(Medium& value) {
        auto word = number<uint32_t>();
        if (word > static_cast<uint32_t>(Medium::local))
            ok_ = false;
        else
            value = Medium{word};
    }
    void get(RankEnd& value) {
        auto word = number<uint32_t>();
        if (word > static_cast<uint32_t>(kLastRankEnd))
            ok_ = false;
        else
            value = RankEnd{word};
    }
    void get(Absence& value) {
        auto word = number<uint32_t>();
        if (word > static_cast<uint32_t>(kLastAbsence))
            ok_ = false;
        else
            value = Absence{word};
    }
    void get(bool& value) {
        auto byte = number<uint8_t>();
        if (byte > 1) ok_ = false;
        value = byte != 0;
    }
    void get(std::string& text) {
        auto size = number<uint32_t>();
        if (!take(size)) return;
        text.assign(reinterpret_cast<const char*>(at_), size);
        skip(size);
    }
    void get(Bytes& bytes) {
        auto size = number<uint32_t>();
        if (!take(size)) return;
        bytes.assign(at_, at_ + size);
        skip(size);
    }
    template <class Item>
    void get(std::vector<Item>& items) {
        auto count = number<uint32_t>();
        // Items are appended as they are read: a lying count ends at the first item that is not there.
        for (uint32_t i = 0; i < count && ok_; ++i) {
            Item item;
            get_item(item);
            if (ok_) items.push_back(std::move(item));
        }
    }
    void get(Digest& digest) {
        if (!take(digest.size())) return;
        std::memcpy(digest.data(), at_, digest.size());
        skip(digest.size());
    }
    void get_item(Generation& item) { get(item); }
    void get_item(std::string& item) { get(item); }
    void get_item(Bytes& item) { get(item); }
    void get_item(uint64_t& item) { get(item); }
    void get_item(int32_t& item) { get(item); }
    template <class Item>
    void get_item(Item& item) {
        item.each(*this);
    }
    const std::byte* at_;
    size_t left_;
    bool ok_ = true;
};

// Each number means one message.
template <size_t... I>
constexpr bool numbers_differ(std::index_sequence<I...>) {
    const uint16_t numbers[] = {std::variant_alternative_t<I, Message::Variant>::kType...};
    for (size_t one = 0; one < sizeof...(I); ++one)
        for (size_t other = 0; other < one; ++other)
            if (numbers[one] == numbers[other]) return false;
    return true;
}
static_assert(numbers_differ(std::make_index_sequence<std::variant_size_v<Message::Variant>>()));

template <size_t I = 0>
std::optional<Message> decode(uint16_t type, Reader& in) {
    if constexpr (I == std::variant_size_v<Message::Variant>) {
        return std::nullopt;
    } else {
        using Type = std::variant_alternative_t<I, Message::Variant>;
        if (type != Type::kType) return decode<I + 1>(type, in);
        Type message;
        message.each(in);
        if (!in.ok() || in.left() != 0) return std::nullopt;
        return Message(std::move(message));
    }
}

}  // namespace

// Every message: its name, and how one of them becomes a Message (one_of.h).
template <class T>
constexpr const char* kName = nullptr;
#define NAME(T)                          \
    template <>                          \
    constexpr const char* kName<T> = #T; \
    template Message::OneOf(T)
NAME(Clock);
NAME(Begin);
NAME(Freeze);
NAME(Drain);
NAME(Save);
NAME(Renew);
NAME(Waiting);
NAME(LogSaid);
NAME(LogsSaid);
NAME(LogOrder);
NAME(LogOrders);
NAME(AskLog);
NAME(Moved);
NAME(Stays);
NAME(Wrote);
NAME(CopyGone);
NAME(Promoted);
NAME(NoCopy);
NAME(CopyMade);
NAME(CopyEnded);
NAME(EndCopies);
NAME(Inject);
NAME(Injected);
NAME(Streams);
NAME(Cloned);
NAME(StartCopy);
NAME(LeaderDied);
NAME(TakePlace);
NAME(LogSize);
NAME(AskLiving);
NAME(Living);
NAME(Resume);
NAME(Cancel);
NAME(Query);
NAME(FinalizeReleased);
NAME(Go);
NAME(Leave);
NAME(Leaving);
NAME(Depart);
NAME(Warned);
NAME(AskProgram);
NAME(OwnState);
NAME(Spare);
NAME(InStarter);
NAME(Kill);
NAME(Stand);
NAME(Starting);
NAME(Hello);
NAME(Refuse);
NAME(Frozen);
NAME(Take);
NAME(Closed);
NAME(Again);
NAME(Drained);
NAME(Captured);
NAME(Saved);
NAME(Images);
NAME(Resumed);
NAME(ArrivedFinalize);
NAME(Diagnosis);
NAME(Warning);
NAME(Restored);
NAME(Phase);
NAME(Fatal);
NAME(NodeHello);
NAME(Joined);
NAME(Gone);
NAME(Placed);
NAME(Places);
NAME(Sized);
NAME(Launch);
NAME(StartDaemons);
NAME(NotStarted);
NAME(Signal);
NAME(Input);
NAME(OutputTaken);
NAME(Fence);
NAME(AskRank);
NAME(RankAnswer);
NAME(Ready);
NAME(Output);
NAME(RankEnded);
NAME(InputTaken);
NAME(Aborted);
NAME(Sizes);
NAME(MakeRoom);
NAME(KeepCopies);
NAME(Flush);
NAME(AskCopies);
NAME(Inspect);
NAME(Inspected);
NAME(Chosen);
NAME(Room);
NAME(Flushed);
NAME(Copies);
NAME(Fetch);
NAME(Fetched);
NAME(Encode);
NAME(Encoded);
NAME(Rebuild);
NAME(Rebuilt);
NAME(Order);
NAME(To);
NAME(Parent);
NAME(Beat);
NAME(Roll);
NAME(Attach);
NAME(Here);
NAME(Missing);
#undef NAME

namespace {

template <class... Types>
constexpr bool all_named(const std::variant<Types...>*) {
    return ((kName<Types> != nullptr) && ...);
}
static_assert(all_named(static_cast<const Message*>(nullptr)), "a message without a name");

}  // namespace

const char* name_of(RestartPhase phase) {
    switch (phase) {
        case RestartPhase::load:
            return "load";
        case RestartPhase::adopt:
            return "adopt";
        case RestartPhase::threads:
            return "threads";
        case RestartPhase::process:
            return "process";
        case RestartPhase::rebuild:
            return "rebuild";
        case RestartPhase::go:
            return "go";
    }
    return "";
}

const char* name_of(const Message& message) {
    always(!message.valueless_by_exception(), "a message that is none");
    return std::visit([](const auto& m) { return kName<std::decay_t<decltype(m)>>; }, message);
}

Bytes encode(const Message& message, Seal* seal) {
    Bytes frame;
    frame.reserve(kUsualFrame);
    frame.resize(kHeaderSize);
    uint16_t type = 0;
    Writer out(frame);
    std::visit(
        [&](const auto& m) {
            type = m.kType;
            const_cast<std::decay_t<decltype(m)>&>(m).each(out);
        },
        message);
    always(frame.size() >= kHeaderSize, "a frame without its head");
    size_t payload = frame.size() - kHeaderSize;
    if (payload > kMaxPayload)
        fail("a {} message of {} bytes is too long for the wire", name_of(message), payload);
    Bytes header;
    Writer head(header);
    head.number(static_cast<uint32_t>(payload));
    head.number(type);
    head.number(kWireVersion);
    always(header.size() == kHeaderSize, "a head of another length than readers take");
    std::memcpy(frame.data(), header.data(), kHeaderSize);
    if (seal) {
        Tag tag = seal->next(frame.data(), frame.size());
        frame.insert(frame.end(), tag.begin(), tag.end());
    }
    return frame;
}

std::optional<Message> unwrapped(const Bytes& frame) {
    Decoder decoder;
    decoder.feed(frame.data(), frame.size());
    auto message = decoder.next();
    return message && decoder.empty() ? message : std::nullopt;
}

void Decoder::feed(const void* data, size_t size) {
    if (broken()) return;
    always(start_ <= buffer_.size(), "bytes that are used before they have come");
    if (start_ > 0 && start_ * 2 >= buffer_.size()) {  // consumed bytes go when they are the larger half
        buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(start_));
        start_ = 0;
    }
    auto* at = static_cast<const std::byte*>(data);
    buffer_.insert(buffer_.end(), at, at + size);
}

std::optional<Message> Decoder::give_up(std::string why) {
    error_ = std::move(why);
    buffer_ = {};
    start_ = 0;
    return std::nullopt;
}

std::optional<Message> Decoder::next() {
    if (broken() || buffer_.size() - start_ < kHeaderSize) return std::nullopt;
    const std::byte* frame = buffer_.data() + start_;
    Reader header(frame, kHeaderSize);
    auto payload = header.number<uint32_t>();
    auto type = header.number<uint16_t>();
    auto version = header.number<uint16_t>();
    if (version != kWireVersion)
        return give_up(fmt::format("the peer speaks wire version {}, this build {}", version, kWireVersion));
    if (payload > max_payload_) return give_up(fmt::format("a frame of {} bytes is over the limit", payload));
    size_t whole = kHeaderSize + payload + (seal_ ? kTagSize : 0);
    if (buffer_.size() - start_ < whole) return std::nullopt;
    if (seal_) {
        Tag tag = seal_->next(frame, kHeaderSize + payload);
        // Every byte is looked at whatever the first ones say, so that time tells nothing.
        unsigned difference = 0;
        for (size_t i = 0; i < kTagSize; ++i)
            difference |= static_cast<unsigned>(tag[i] ^ frame[kHeaderSize + payload + i]);
        if (difference != 0) return give_up("a frame with a wrong seal");
    }
    Reader body(frame + kHeaderSize, payload);
    auto message = decode(type, body);
    if (!message) return give_up(fmt::format("a frame of type {} that is unknown or damaged", type));
    always(whole <= buffer_.size() - start_, "a frame that is used before it is whole");
    start_ += whole;
    if (start_ == buffer_.size()) {
        buffer_.clear();
        start_ = 0;
    }
    return message;
}

}  // namespace fermata::wire
