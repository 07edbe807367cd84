#include "api/table.h"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/cbor.h"
#include "base/error.h"
#include "base/page.h"
#include "base/text.h"
#include "image/checksum.h"

namespace fermata::api {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;

template <typename... Args>
[[noreturn]] void damaged(fmt::format_string<Args...> format, Args&&... args) {
    throw Error(fmt::format(format, std::forward<Args>(args)...), ExitCode::damaged);
}

Kind kind_of(int64_t number) {
    if (number < 0 || number > static_cast<int64_t>(Kind::object))
        throw std::runtime_error("a kind that is none");
    return static_cast<Kind>(number);
}

int64_t integer(const Json& value) {
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX))
        throw std::runtime_error("a number that it cannot be");
    return value.get<int64_t>();
}

Index index_of(const Json& list) {
    if (!list.is_array() || list.size() > FERMATA_MOST_DIMENSIONS)
        throw std::runtime_error("too many dimensions");
    Index index;
    for (const Json& value : list) index.push_back(integer(value));
    return index;
}

SavedEntry entry_of(const Json& json) {
    SavedEntry entry;
    entry.kind = kind_of(integer(json.at("kind")));
    auto element = element_of(static_cast<int>(integer(json.at("type"))));
    if (!element) throw std::runtime_error("a type that is none");
    entry.element = *element;
    entry.shape = index_of(json.at("shape"));
    for (const Json& one : json.at("parts")) {
        SavedPart part;
        part.grid = {index_of(one.at("offset")), index_of(one.at("extent")), index_of(one.at("stride"))};
        part.address = static_cast<uint64_t>(integer(one.at("address")));
        part.bytes = static_cast<uint64_t>(integer(one.at("bytes")));
        const size_t n = entry.shape.size();
        if (entry.kind != Kind::object) {
            if (part.grid.offset.size() != n || part.grid.extent.size() != n ||
                part.grid.stride.size() != n || n == 0)
                throw std::runtime_error("a part of other dimensions than its array");
            if (std::string why = why_no_part(part.grid, entry.shape); !why.empty())
                throw std::runtime_error(why);
            auto elements = static_cast<uint64_t>(part.grid.elements());
            if (part.bytes / entry.element.bytes != elements || part.bytes % entry.element.bytes != 0)
                throw std::runtime_error("a part of another size than its extent");
        }
        if (part.address % kPage != 0 || part.bytes > INT64_MAX - part.address)
            throw std::runtime_error("a part where none can be");
        entry.parts.push_back(std::move(part));
    }
    return entry;
}

}  // namespace

std::string text_of(const Shape& shape) {
    std::string text = shape.element.name;
    for (int64_t n : shape.shape) text += fmt::format("[{}]", n);
    return shape.kind == Kind::object ? "object" : fmt::format("{} {}", name_of(shape.kind), text);
}

std::vector<std::byte> Table::encoded() const {
    Json all = {{"version", kVersion}, {"step", step}, {"entries", Json::array()}};
    for (auto& [name, entry] : entries) {
        Json parts = Json::array();
        for (const SavedPart& part : entry.parts)
            parts.push_back({{"offset", part.grid.offset},
                             {"extent", part.grid.extent},
                             {"stride", part.grid.stride},
                             {"address", part.address},
                             {"bytes", part.bytes}});
        all["entries"].push_back({{"name", as_utf8(name)},
                                  {"kind", static_cast<int>(entry.kind)},
                                  {"type", static_cast<int>(entry.element.type)},
                                  {"shape", entry.shape},
                                  {"parts", parts}});
    }
    std::vector<std::uint8_t> bytes = Json::to_cbor(all);
    auto* at = reinterpret_cast<const std::byte*>(bytes.data());
    return {at, at + bytes.size()};
}

Table Table::decoded(const void* bytes, size_t size, const std::string& where) {
    if (const char* fault = cbor_fault(bytes, size)) damaged("{}: {}", where, fault);
    auto* at = static_cast<const std::uint8_t*>(bytes);
    try {
        Json all = Json::from_cbor(at, at + size);
        if (integer(all.at("version")) != kVersion)
            damaged("{}: its table has a version that this Fermata does not know", where);
        Table table;
        table.step = integer(all.at("step"));
        for (const Json& one : all.at("entries"))
            if (!table.entries.emplace(bytes_of_utf8(one.at("name").get<std::string>()), entry_of(one))
                     .second)
                damaged("{}: two things of one name", where);
        return table;
    } catch (const Error&) {
        throw;
    } catch (const std::exception& error) {
        damaged("{}: its table is not readable: {}", where, error.what());
    }
}

uint64_t fingerprint(const State& state) {
    std::string all;
    for (auto& [name, entry] : state.entries()) {
        Shape shape = entry;
        if (shape.kind == Kind::local) shape.shape.clear();  // each rank has its own number
        all += fmt::format("{}:{}={};", name.size(), name, text_of(shape));
    }
    image::Checksum sum = image::checksum_of(all.data(), all.size());
    uint64_t number;
    std::memcpy(&number, sum.bytes.data(), sizeof number);
    return number;
}

std::string why_no_match(const State& state, const Table& saved, bool same_ranks) {
    for (auto& [name, entry] : state.entries()) {
        auto found = saved.entries.find(name);
        if (found == saved.entries.end())
            return fmt::format("{} is protected, and was not saved", visible(name));
        if (!(found->second == static_cast<const Shape&>(entry)))
            return fmt::format("{} was saved as {}, and is protected as {}", visible(name),
                               text_of(found->second), text_of(entry));
        if (!same_ranks && (entry.kind == Kind::local || entry.kind == Kind::object))
            return fmt::format("{} is each rank's own, and there are other ranks now than when it was saved",
                               visible(name));
    }
    for (auto& [name, entry] : saved.entries)
        if (!state.entries().count(name))
            return fmt::format("{} was saved ({}), and is not protected", visible(name), text_of(entry));
    return {};
}

}  // namespace fermata::api
