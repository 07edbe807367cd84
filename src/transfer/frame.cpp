#include "transfer/frame.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/invariant.h"
#include "base/text.h"
#include "files/kept.h"

namespace fermata::transfer {
namespace {

constexpr size_t kMostLine = 1000;

class Writer {
  public:
    template <class Number>
    Writer& number(Number value) {
        for (size_t i = 0; i < sizeof value; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
        return *this;
    }
    Writer& text(const std::string& text) {
        always(text.size() <= kMostName, "a name that the other node does not take");
        number(static_cast<uint16_t>(text.size()));
        return raw(text.data(), text.size());
    }
    Writer& raw(const void* data, size_t size) {
        auto* at = static_cast<const std::byte*>(data);
        bytes_.insert(bytes_.end(), at, at + size);
        return *this;
    }
    wire::Bytes take() { return std::move(bytes_); }

  private:
    wire::Bytes bytes_;
};

class Reader {
  public:
    explicit Reader(View bytes) : left_(bytes) {}

    template <class Number>
    Number number() {
        View bytes = take(sizeof(Number));
        Number value = 0;
        for (size_t i = 0; i < bytes.size(); ++i)
            value = static_cast<Number>(value | static_cast<Number>(bytes[i]) << (8 * i));
        return value;
    }
    std::string text(size_t most) {
        const size_t size = number<uint16_t>();
        if (size > most) fail("a name of {} bytes", size);
        View bytes = take(size);
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    View take(size_t size) {
        if (size > left_.size()) fail("it ends early");
        View bytes = left_.first(size);
        left_ = left_.subspan(size);
        return bytes;
    }
    bool more() const { return !left_.empty(); }
    void end() const {
        if (more()) fail("{} bytes too much", left_.size());
    }

  private:
    View left_;
};

bool is_kind(uint16_t kind) {
    return (kind >= static_cast<uint16_t>(Kind::list) && kind <= static_cast<uint16_t>(Kind::stream)) ||
           (kind >= static_cast<uint16_t>(Kind::names) && kind <= static_cast<uint16_t>(Kind::arrived));
}

bool is_question(Kind kind) {
    return kind == Kind::list || kind == Kind::read || kind == Kind::digest || kind == Kind::stream;
}

}  // namespace

Head read_head(View bytes, uint32_t most) {
    Reader in(bytes);
    const auto length = in.number<uint32_t>();
    const auto kind = in.number<uint16_t>(), version = in.number<uint16_t>();
    in.end();
    if (version != kVersion)
        fail("the other node speaks version {} of transfers, this one {}", version, kVersion);
    if (!is_kind(kind)) fail("a frame of kind {}, which there is not", kind);
    if (length > most) fail("a frame of {} bytes is over the limit of {}", length, most);
    return {length, Kind{kind}};
}

wire::Bytes write_head(Head head) {
    always(is_kind(static_cast<uint16_t>(head.kind)), "a frame of a kind that there is not");
    always(head.length <= kMostData, "a frame that is longer than the other node takes");
    return Writer().number(head.length).number(static_cast<uint16_t>(head.kind)).number(kVersion).take();
}

bool may_be_asked_for(const std::string& name) {
    const std::string kept = std::string(files::kKeptFolder) + "/";
    if (name.starts_with(kept)) return files::is_kept_name(name.substr(kept.size()));
    return !name.empty() && name.size() <= kMostName && name[0] != '.' &&
           std::none_of(name.begin(), name.end(), [](char c) { return c == '/' || c == '\0'; });
}

wire::Bytes to_bytes(const Question& question) {
    always(is_question(question.kind), "a question that is an answer");
    always((question.kind == Kind::list) == question.name.empty(), "a question about no file, or about all");
    return Writer()
        .number(question.generation.number())
        .number(question.offset)
        .number(question.length)
        .text(question.name)
        .take();
}

Question question_of(Kind kind, View payload) {
    Reader in(payload);
    Question question;
    question.kind = kind;
    if (!is_question(kind)) fail("an answer where a question was due");
    question.generation = Generation(in.number<uint32_t>());
    if (!question.generation || question.generation.number() > Generation::kLast)
        fail("a question for generation {}", question.generation.number());
    question.offset = in.number<uint64_t>();
    question.length = in.number<uint64_t>();
    question.name = in.text(kMostName);
    in.end();
    if (kind == Kind::list ? !question.name.empty() : !may_be_asked_for(question.name))
        fail("a question for {}, which is no file of a generation", visible(question.name));
    return question;
}

wire::Bytes to_bytes(const std::vector<File>& files) {
    Writer out;
    for (const File& file : files) out.number(file.bytes).text(file.name);
    return out.take();
}

std::vector<File> files_of(View payload) {
    std::vector<File> files;
    for (Reader in(payload); in.more();) {
        File file;
        file.bytes = in.number<uint64_t>();
        file.name = in.text(kMostName);
        if (!may_be_asked_for(file.name)) fail("{} is no file of a generation", visible(file.name));
        files.push_back(std::move(file));
    }
    return files;
}

wire::Bytes to_bytes(const Size& size) {
    always(size.follows <= size.file, "more of a file than it has");
    return Writer().number(size.file).number(size.follows).take();
}

Size size_of(View payload) {
    Reader in(payload);
    Size size;
    size.file = in.number<uint64_t>();
    size.follows = in.number<uint64_t>();
    in.end();
    if (size.follows > size.file) fail("{} bytes of a file of {}", size.follows, size.file);
    return size;
}

wire::Bytes to_bytes(const Sum& sum) {
    return Writer().number(sum.bytes).raw(sum.checksum.bytes.data(), sum.checksum.bytes.size()).take();
}

Sum sum_of(View payload) {
    Reader in(payload);
    Sum sum;
    sum.bytes = in.number<uint64_t>();
    View bytes = in.take(sum.checksum.bytes.size());
    in.end();
    std::memcpy(sum.checksum.bytes.data(), bytes.data(), bytes.size());
    return sum;
}

wire::Bytes to_bytes(const std::string& line) {
    return Writer().raw(line.data(), std::min(line.size(), kMostLine)).take();
}

std::string line_of(View payload) {
    return visible({reinterpret_cast<const char*>(payload.data()), std::min(payload.size(), kMostLine)});
}

}  // namespace fermata::transfer
