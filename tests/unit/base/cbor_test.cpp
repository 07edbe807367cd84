// What is checked of CBOR before there is memory for it.
#include "base/cbor.h"

#include <gtest/gtest.h>

#include <string>

namespace fermata {
namespace {

// Each byte of it would be an item, which takes some forty bytes of memory.
TEST(Cbor, ManySmallItemsAreRefused) {
    std::string list = {'\x9a', '\x00', '\xff', '\xff', '\xff'};  // of 2^24 - 1, and itself
    list.resize(list.size() + kMostCborItems - 1, '\x80');
    EXPECT_STREQ(cbor_fault(list.data(), list.size()), nullptr);
    list[1] = '\x01';
    list[2] = list[3] = list[4] = '\0';  // 2^24
    list += '\x80';
    EXPECT_STREQ(cbor_fault(list.data(), list.size()), "too many items");
}

}  // namespace
}  // namespace fermata
