#include "api/state.h"

#include <cstring>

#include "api/fault.h"
#include "base/text.h"

namespace fermata::api {
namespace {

constexpr size_t kLongestName = 200;

std::string checked_name(const char* name) {
    size_t length = name ? std::strlen(name) : 0;
    if (length == 0 || length > kLongestName)
        refuse(FERMATA_ARGUMENT, "a name has 1 to {} bytes, not {}", kLongestName, length);
    return name;
}

Element checked_element(const std::string& name, int type) {
    auto element = element_of(type);
    if (!element) refuse(FERMATA_ARGUMENT, "{}: {} is no fermata_type", visible(name), type);
    return *element;
}

Part checked_part(const std::string& name, const Shape& shape, void* data, const int64_t* offset,
                  const int64_t* extent, const int64_t* stride) {
    const size_t n = shape.shape.size();
    if (!offset || !extent) refuse(FERMATA_ARGUMENT, "{}: offset and extent are needed", visible(name));
    Part part{{Index(offset, offset + n), Index(extent, extent + n),
               stride ? Index(stride, stride + n) : Index(n, 1)},
              data};
    if (std::string why = why_no_part(part.grid, shape.shape); !why.empty())
        refuse(FERMATA_ARGUMENT, "{}: {}", visible(name), why);
    if (part.grid.elements() > INT64_MAX / shape.element.bytes || (!data && part.grid.elements() > 0))
        refuse(FERMATA_ARGUMENT, "{}: {} elements, and no memory that holds them", visible(name),
               part.grid.elements());
    return part;
}

}  // namespace

const char* name_of(Kind kind) {
    switch (kind) {
        case Kind::global:
            return "global";
        case Kind::local:
            return "local";
        case Kind::array:
            return "array";
        case Kind::object:
            break;
    }
    return "object";
}

void State::protect(Kind kind, const char* name, void* data, int type, int64_t count) {
    std::string key = checked_name(name);
    Entry entry;
    entry.kind = kind;
    entry.element = checked_element(key, type);
    entry.shape = {count};
    const int64_t zero = 0;
    if (count < 0) refuse(FERMATA_ARGUMENT, "{}: {} elements", visible(key), count);
    entry.parts = {checked_part(key, entry, data, &zero, &count, nullptr)};
    entries_[key] = std::move(entry);
}

void State::protect_array(const char* name, void* data, int type, int dimensions, const int64_t* global,
                          const int64_t* offset, const int64_t* extent, const int64_t* stride) {
    std::string key = checked_name(name);
    if (dimensions < 1 || dimensions > FERMATA_MOST_DIMENSIONS || !global)
        refuse(FERMATA_ARGUMENT, "{}: an array has 1 to {} dimensions, not {}", visible(key),
               FERMATA_MOST_DIMENSIONS, dimensions);
    Entry entry;
    entry.kind = Kind::array;
    entry.element = checked_element(key, type);
    entry.shape.assign(global, global + dimensions);
    if (product(entry.shape) < 0) refuse(FERMATA_ARGUMENT, "{}: a global shape that cannot be", visible(key));
    entry.parts = {checked_part(key, entry, data, offset, extent, stride)};
    entries_[key] = std::move(entry);
}

void State::add_part(const char* name, void* data, const int64_t* offset, const int64_t* extent,
                     const int64_t* stride) {
    std::string key = checked_name(name);
    auto found = entries_.find(key);
    if (found == entries_.end() || found->second.kind != Kind::array)
        refuse(FERMATA_ARGUMENT, "{}: fermata_protect_array has not named it", visible(key));
    found->second.parts.push_back(checked_part(key, found->second, data, offset, extent, stride));
}

void State::protect_object(const char* name, const Hooks& hooks) {
    std::string key = checked_name(name);
    if (!hooks.size || !hooks.pack || !hooks.unpack)
        refuse(FERMATA_ARGUMENT, "{}: an object needs the hooks size, pack and unpack", visible(key));
    Entry entry;
    entry.kind = Kind::object;
    entry.hooks = hooks;
    entries_[key] = std::move(entry);
}

void State::forget(const char* name) {
    std::string key = checked_name(name);
    if (entries_.erase(key) == 0)
        refuse(FERMATA_ARGUMENT, "{}: nothing of this name is protected", visible(key));
}

}  // namespace fermata::api
