// cbor_fault() checks CBOR from strangers before nlohmann's parser sees it. That parser calls itself for
// nested items, and some thousand levels end its stack; the check passes only what Fermata's own writers use:
// definite lengths, no tags, few levels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fermata {

inline constexpr unsigned kDeepestCbor = 32;  // process state, the deepest of ours, has seven levels
// An item may be a byte, and takes up to 70 of memory. Those that Fermata writes have some four bytes: so
// many small ones are let pass, and of a longer text one for every two bytes. (A process of 50,000
// descriptors has two million items.)
inline constexpr uint64_t kSmallCborItems = uint64_t{1} << 24;
inline constexpr uint64_t most_cbor_items(size_t size) { return kSmallCborItems + size / 2; }

// Says what is wrong with `data` as one item; null: nothing, and parsing costs no more memory than some 35
// times its size, and a GiB besides.
inline const char* cbor_fault(const void* data, size_t size) {
    const auto* bytes = static_cast<const uint8_t*>(data);
    uint64_t left[kDeepestCbor];  // items that are due, by level
    unsigned level = 0;
    left[0] = 1;
    uint64_t items = 0;
    for (size_t at = 0;;) {
        while (left[level] == 0) {
            if (level == 0) return at == size ? nullptr : "bytes after its end";
            --level;
        }
        --left[level];
        if (++items > most_cbor_items(size)) return "too many items";
        if (at == size) return "it ends early";
        const unsigned major = bytes[at] >> 5, info = bytes[at] & 31;
        ++at;
        if (info > 27) return "a length that is not told";
        const size_t width = info < 24 ? 0 : size_t{1} << (info - 24);
        if (width > size - at) return "it ends early";
        uint64_t number = info;
        if (width) number = 0;
        for (size_t i = 0; i < width; ++i) number = number << 8 | bytes[at + i];
        at += width;
        switch (major) {
            case 2:  // bytes
            case 3:  // text
                if (number > size - at) return "it ends early";
                at += number;
                break;
            case 4:  // list
            case 5:  // map, of twice as many items
                // An item has a byte at least.
                if (number > (size - at) / (major - 3)) return "it ends early";
                if (++level == kDeepestCbor) return "nested too deeply";
                left[level] = number * (major - 3);
                break;
            case 6:
                return "a tag";
        }
    }
}

}  // namespace fermata
