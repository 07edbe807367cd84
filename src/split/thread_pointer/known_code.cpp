#include "split/thread_pointer/known_code.h"

#include <cstring>
#include <type_traits>

#define XXH_INLINE_ALL  // the split process stands below src/image, which has its own
#include <xxhash.h>

namespace fermata::split::thread_pointer {
namespace {

static_assert(std::has_unique_object_representations_v<CodeHead>, "written as it lies in memory");

using Sum = XXH128_canonical_t;

Sum sum_of(std::string_view bytes) {
    Sum sum;
    XXH128_canonicalFromHash(&sum, XXH3_128bits(bytes.data(), bytes.size()));
    return sum;
}

}  // namespace

std::string bytes_of(CodeHead head, const Prefixes& prefixes) {
    head.count = prefixes.size();
    std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
    bytes.append(reinterpret_cast<const char*>(prefixes.data()), prefixes.size() * sizeof(uint32_t));
    const Sum sum = sum_of(bytes);
    return bytes.append(reinterpret_cast<const char*>(sum.digest), sizeof sum.digest);
}

std::optional<Prefixes> prefixes_in(std::string_view bytes, const CodeHead& wanted) {
    CodeHead head;
    if (bytes.size() < sizeof head + sizeof(Sum)) return {};
    const std::string_view body = bytes.substr(0, bytes.size() - sizeof(Sum));
    const Sum sum = sum_of(body);
    if (std::memcmp(sum.digest, bytes.data() + body.size(), sizeof sum.digest) != 0) return {};
    std::memcpy(&head, body.data(), sizeof head);
    const size_t rest = body.size() - sizeof head;
    if (rest % sizeof(uint32_t) != 0 || head.count != rest / sizeof(uint32_t)) return {};
    Prefixes prefixes(head.count);
    if (rest > 0) std::memcpy(prefixes.data(), body.data() + sizeof head, rest);
    head.count = wanted.count;
    if (head != wanted) return {};
    uint64_t least = wanted.begin;
    for (uint32_t prefix : prefixes) {
        if (prefix < least || prefix >= wanted.end) return {};
        least = uint64_t{prefix} + 1;
    }
    return prefixes;
}

}  // namespace fermata::split::thread_pointer
