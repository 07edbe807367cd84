#include "pmi/helper_message.h"

#include "base/error.h"
#include "base/invariant.h"

namespace fermata::pmi::helper {
namespace {

template <class T>
concept Struct = requires(T item) {
    item.each([](auto&...) {});
};

class Writer {
  public:
    template <class... Fields>
    void operator()(const Fields&... fields) {
        (put(fields), ...);
    }
    void put(uint32_t value) {
        for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> 8 * i);
    }

    std::string bytes;

  private:
    void put(int32_t value) { put(static_cast<uint32_t>(value)); }
    void put(Stage value) { put(static_cast<uint32_t>(value)); }
    void put(const std::string& text) {
        put(static_cast<uint32_t>(text.size()));
        bytes += text;
    }
    void put(Rank rank) { put(rank.number()); }
    void put(const RankRange& range) { (*this)(range.first().number(), range.count()); }
    void put(const Block& block) { (*this)(block.first_node, block.nodes, block.ranks_per_node); }
    template <Struct Item>
    void put(const Item& item) {
        const_cast<Item&>(item).each(*this);  // `each` serves both directions
    }
    template <class Item>
    void put(const std::vector<Item>& items) {
        put(static_cast<uint32_t>(items.size()));
        for (const Item& item : items) put(item);
    }
};

class Reader {
  public:
    explicit Reader(std::string_view bytes) : left_(bytes) {}

    template <class... Fields>
    void operator()(Fields&... fields) {
        (get(fields), ...);
    }
    bool at_end() const { return left_.empty(); }

  private:
    std::string_view take(size_t size) {
        if (size > left_.size()) fail("a field runs over the end of its frame");
        std::string_view taken = left_.substr(0, size);
        left_.remove_prefix(size);
        return taken;
    }
    void get(uint32_t& value) {
        std::string_view bytes = take(4);
        value = 0;
        for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
    }
    void get(int32_t& value) {
        uint32_t bits = 0;
        get(bits);
        value = static_cast<int32_t>(bits);
    }
    void get(Stage& value) {
        uint32_t number = 0;
        get(number);
        if (number > static_cast<uint32_t>(Stage::failed)) fail("no such stage: {}", number);
        value = static_cast<Stage>(number);
    }
    void get(std::string& text) {
        uint32_t size = 0;
        get(size);
        text = take(size);
    }
    void get(Rank& rank) {
        uint32_t number = 0;
        get(number);
        auto read = Rank::of(number);
        if (!read) fail("no job has a rank {}", number);
        rank = *read;
    }
    void get(Block& block) { (*this)(block.first_node, block.nodes, block.ranks_per_node); }
    template <Struct Item>
    void get(Item& item) {
        item.each(*this);
    }
    template <class Item>
    void get(std::vector<Item>& items) {
        uint32_t count = 0;
        get(count);
        // An item has four bytes at least; no memory is reserved because a count says so.
        if (count > left_.size() / 4) fail("a list runs over the end of its frame");
        for (uint32_t i = 0; i < count; ++i) get(items.emplace_back());
    }
    void get(std::vector<RankRange>& ranges) {
        uint32_t all = 0, first = 0, count = 0;
        get(all);
        for (uint32_t i = 0; i < all; ++i) {
            (*this)(first, count);
            auto range = RankRange::of(first, count);
            if (!range) fail("no job has {} ranks from {} on", count, first);
            ranges.push_back(*range);
        }
    }

    std::string_view left_;
};

template <size_t I = 0>
Message read(uint8_t type, std::string_view body) {
    if constexpr (I == std::variant_size_v<Message>) {
        fail("no such message: {}", type);
    } else {
        using One = std::variant_alternative_t<I, Message>;
        if (type != One::kType) return read<I + 1>(type, body);
        One message;
        Reader reader(body);
        message.each(reader);
        if (!reader.at_end()) fail("bytes after the end of message {}", type);
        return message;
    }
}

uint32_t little(std::string_view bytes) {
    uint32_t value = 0;
    for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
    return value;
}

}  // namespace

std::string frame(const Message& message) {
    return std::visit(
        [](auto one) {
            Writer body;
            one.each(body);
            if (body.bytes.size() >= kMostOfFrame) fail("a message of {} bytes", body.bytes.size());
            Writer head;
            head.put(static_cast<uint32_t>(body.bytes.size() + 1));
            always(head.bytes.size() == 4, "a head of another length than readers take");
            return head.bytes + static_cast<char>(one.kType) + body.bytes;
        },
        message);
}

std::optional<Message> Decoder::next() {
    const std::string_view left = std::string_view(bytes_).substr(start_);
    if (left.size() < 4) return std::nullopt;
    const uint32_t size = little(left);
    if (size == 0 || size > kMostOfFrame) fail("a frame of {} bytes", size);
    if (left.size() - 4 < size) return std::nullopt;
    Message message = read(static_cast<uint8_t>(left[4]), left.substr(5, size - 1));
    start_ += 4 + size_t{size};
    always(start_ <= bytes_.size(), "a frame that is used before it is whole");
    if (start_ == bytes_.size() || start_ > 1 << 20) {
        bytes_.erase(0, start_);
        start_ = 0;
    }
    return message;
}

}  // namespace fermata::pmi::helper
