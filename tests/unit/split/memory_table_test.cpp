// The memory table's bytes: round trip, and damage is reported.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "base/error.h"
#include "split/memory/memory.h"
#include "split/pages/residency.h"

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

TEST(MemoryTable, WhatCouldNotBeReadIsNotWritten) {
    MemoryTable table = sample();
    table.maps[0].runs = {{0x400000, 0x402000}, {0x401000, 0x403000}};
    EXPECT_THROW(encode(table), Error);
}

// Linux's PAGEMAP_SCAN says where it ended wrongly when it found many regions.
TEST(PageScanner, EveryTouchedPageOnce) {
    for (size_t pages : {300, 1025, 1100, 1600, 2048, 4096, 8192})
        for (size_t step : {2, 3}) {
            void* memory = mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            madvise(memory, pages * kPage, MADV_NOHUGEPAGE);
            auto* at = static_cast<char*>(memory);
            auto begin = reinterpret_cast<uint64_t>(memory);
            std::vector<Range> touched;
            for (size_t i = 0; i < pages; i += step) {
                at[i * kPage] = 1;
                touched.push_back({begin + i * kPage, begin + (i + 1) * kPage});
            }
            EXPECT_EQ(PageScanner().touched({begin, begin + pages * kPage}, false), touched) << pages;
            munmap(memory, pages * kPage);
        }
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
