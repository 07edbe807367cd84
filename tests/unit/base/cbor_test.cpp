// What is checked of CBOR before there is memory for it.
#include "base/cbor.h"

#include <gtest/gtest.h>

#include <string>

namespace fermata {
namespace {

// A list of so many empty ones: each byte of it is an item, which takes some tens of bytes of memory.
std::string list_of(uint32_t count) {
    std::string list(1, '\x9a');
    for (int shift = 24; shift >= 0; shift -= 8) list += static_cast<char>(count >> shift);
    return list + std::string(count, '\x80');
}

TEST(Cbor, ManySmallItemsAreRefused) {
    const std::string few = list_of(kSmallCborItems), many = list_of(2 * kSmallCborItems + 100);
    EXPECT_STREQ(cbor_fault(few.data(), few.size()), nullptr);
    EXPECT_STREQ(cbor_fault(many.data(), many.size()), "too many items");
}

// Those of a process state have some four bytes, however many there are.
TEST(Cbor, ManyItemsOfTheUsualLengthAreNot) {
    constexpr uint32_t kMany = 40'000'000;
    std::string list = list_of(kMany);
    list.resize(5);
    while (list.size() < 5 + 4 * size_t{kMany})
        list.append(
            "\x63"
            "abc",
            4);
    EXPECT_STREQ(cbor_fault(list.data(), list.size()), nullptr);
}

}  // namespace
}  // namespace fermata
