// The memory table's bytes: round trip, and damage is reported.
#include <gtest/gtest.h>

#include "base/error.h"
#include "split/memory/memory.h"

using namespace fermata;
using namespace fermata::split;

namespace {

MemoryTable sample() {
    MemoryTable table;
    table.vdso = 0x1ffffffc5000;
    MapEntry a;
    a.range = {0x400000, 0x404000};
    a.prot = 5;
    a.name = "/bin/program";
    a.runs = {{0x400000, 0x402000}, {0x403000, 0x404000}};
    MapEntry b;
    b.range = {0x1ffff0000000, 0x1ffff0100000};
    b.kind = MapKind::shared_memory;
    b.object = 77;
    b.object_size = 0x100000;
    b.advice = kDontFork | kHugePage;
    table.maps = {a, b};
    return table;
}

}  // namespace

TEST(MemoryTable, RoundTrip) {
    std::string bytes = encode(sample());
    MemoryTable table = decode(bytes);
    EXPECT_EQ(encode(table), bytes);
    EXPECT_EQ(table.maps[0].name, "/bin/program");
    EXPECT_EQ(table.maps[0].runs[1], (Range{0x403000, 0x404000}));
    EXPECT_EQ(table.maps[1].kind, MapKind::shared_memory);
    EXPECT_EQ(table.data_size(), 0x3000u);
}

TEST(MemoryTable, DamageIsAnError) {
    std::string bytes = encode(sample());
    for (size_t size = 0; size < bytes.size(); ++size)
        EXPECT_THROW(decode({bytes.data(), size}), Error) << size;
    std::string bad = bytes;
    bad[0] ^= 1;
    EXPECT_THROW(decode(bad), Error);
    bad = bytes;
    bad[40 + 3] ^= 0x40;  // the first mapping's address
    EXPECT_THROW(decode(bad), Error);
}
