#include "split/thread_pointer/functions.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace fermata::split::thread_pointer {
namespace {

// DW_EH_PE_*: how a pointer is written.
constexpr uint8_t kFormat = 0x0f, kData4 = 0x03, kSigned4 = 0x0b;
constexpr uint8_t kCountUnsigned4 = 0x03, kTableRelativeToHeader = 0x3b;

template <class T>
T value_at(const uint8_t* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

void skip_leb128(const uint8_t*& at) {
    while ((*at++ & 0x80) != 0) {
    }
}

// The format in which a common information entry has its functions' addresses.
std::optional<uint8_t> pointer_format(const uint8_t* cie) {
    constexpr size_t kAugmentation = 9;  // after length, id and version
    const auto* letters = reinterpret_cast<const char*>(cie + kAugmentation);
    if (*letters != 'z') return std::nullopt;
    const uint8_t* at = cie + kAugmentation + std::strlen(letters) + 1;
    for (int i = 0; i < 4; ++i)
        skip_leb128(at);  // code and data factor, return register, length of what follows
    for (const char* letter = letters + 1; *letter != 0; ++letter) {
        switch (*letter) {
            case 'R':
                return *at;
            case 'L':
                ++at;
                break;
            case 'P': {
                uint8_t format = *at++ & kFormat;
                if (format != kData4 && format != kSigned4) return std::nullopt;
                at += 4;
                break;
            }
            case 'S':
                break;
            default:
                return std::nullopt;
        }
    }
    return std::nullopt;
}

}  // namespace

std::vector<Range> functions_of(const MappedObject& object) {
    std::vector<Range> functions;
    if (object.unwind_header == 0) return functions;
    const auto* header = reinterpret_cast<const uint8_t*>(object.unwind_header);
    if (header[0] != 1 || header[2] != kCountUnsigned4 || header[3] != kTableRelativeToHeader)
        return functions;
    auto count = value_at<uint32_t>(header + 8);
    functions.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
        const uint8_t* row = header + 12 + 8 * size_t{i};
        uint64_t begin = object.unwind_header + static_cast<uint64_t>(int64_t{value_at<int32_t>(row)});
        const uint8_t* entry = header + value_at<int32_t>(row + 4);
        const uint8_t* cie = entry + 4 - value_at<uint32_t>(entry + 4);
        std::optional<uint8_t> format = pointer_format(cie);
        if (!format) return {};
        uint8_t size = *format & kFormat;
        if (size != kData4 && size != kSigned4) return {};
        functions.push_back(Range::sized(begin, value_at<uint32_t>(entry + 12)));
    }
    auto before = [](Range a, Range b) { return a.begin() < b.begin(); };
    if (!std::is_sorted(functions.begin(), functions.end(), before))
        std::sort(functions.begin(), functions.end(), before);
    return functions;
}

}  // namespace fermata::split::thread_pointer
