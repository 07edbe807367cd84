// /proc/self/maps and smaps as values: lines as the kernel writes them, and lines that it does not.
#include "split/address/maps.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cinttypes>
#include <cstdio>
#include <sstream>

using fermata::Range;
using namespace fermata::split;

TEST(Maps, LinesOfEveryKind) {
    std::vector<Mapping> maps = parse_maps(
        "00400000-00401000 r-xp 00002000 fe:0a 1048577                            /usr/bin/a program\n"
        "2000000000-2000001000 ---p 00000000 00:00 0 \n"
        "7fab0000-7fab4000 rw-s 000ff000 103:1f 18446744073709551615              /memfd:x (deleted)\n"
        "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]");
    ASSERT_EQ(maps.size(), 4u);
    EXPECT_EQ(maps[0].range, (Range{0x400000, 0x401000}));
    EXPECT_EQ(maps[0].prot, PROT_READ | PROT_EXEC);
    EXPECT_FALSE(maps[0].shared);
    EXPECT_EQ(maps[0].offset, 0x2000u);
    EXPECT_EQ(maps[0].device_major, 0xfeu);
    EXPECT_EQ(maps[0].device_minor, 0x0au);
    EXPECT_EQ(maps[0].inode, 1048577u);
    EXPECT_EQ(maps[0].name, "/usr/bin/a program");
    EXPECT_EQ(maps[1].prot, PROT_NONE);
    EXPECT_EQ(maps[1].inode, 0u);
    EXPECT_EQ(maps[1].name, "");
    EXPECT_EQ(maps[2].prot, PROT_READ | PROT_WRITE);
    EXPECT_TRUE(maps[2].shared);
    EXPECT_EQ(maps[2].device_major, 0x103u);
    EXPECT_EQ(maps[2].device_minor, 0x1fu);
    EXPECT_EQ(maps[2].inode, UINT64_MAX);
    EXPECT_EQ(maps[2].name, "/memfd:x (deleted)");
    EXPECT_EQ(maps[3].range, (Range{0xffffffffff600000, 0xffffffffff601000}));
    EXPECT_EQ(maps[3].name, "[vsyscall]");
}

TEST(Maps, FlagsBelongToTheMappingBefore) {
    std::vector<Mapping> maps = parse_maps(
        "10000-11000 rw-p 00000000 00:00 0 \n"
        "Size:                  4 kB\nRss:                   0 kB\n"
        "VmFlags: rd wr mr mw me ac sd \n"
        "20000-21000 r--p 00000000 00:00 0 \n");
    ASSERT_EQ(maps.size(), 2u);
    EXPECT_EQ(maps[0].flags, " rd wr mr mw me ac sd ");
    EXPECT_EQ(maps[1].flags, "");
}

TEST(Maps, WhatIsNoMappingIsNone) {
    const std::string line = "7f00-8000 rw-p 00001000 fe:01 12 /x";
    ASSERT_EQ(parse_maps(line).size(), 1u);
    // Cut off anywhere before its inode.
    for (size_t length = 0; length <= line.find(" 12 "); ++length)
        EXPECT_TRUE(parse_maps(line.substr(0, length)).empty()) << line.substr(0, length);
    for (const char* wrong : {"7f00+8000 rw-p 00001000 fe:01 12 /x", "7f00-8000-rw-p 00001000 fe:01 12 /x",
                              "7f00-8000 rw-p 00001000 fe.01 12 /x", "7f00-8000 rw-p g0001000 fe:01 12 /x",
                              "10000000000000000-8000 rw-p 00001000 fe:01 12 /x"})
        EXPECT_TRUE(parse_maps(wrong).empty()) << wrong;
}

TEST(Maps, ThisProcessAsScanfReadsIt) {
    const std::string text = maps_text();
    std::istringstream in(text);
    std::vector<Mapping> maps = parse_maps(text);
    size_t i = 0;
    for (std::string line; std::getline(in, line); ++i) {
        ASSERT_LT(i, maps.size());
        uint64_t begin, end, offset, inode;
        uint32_t major, minor;
        char prot[5];
        ASSERT_EQ(std::sscanf(line.c_str(),
                              "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64,
                              &begin, &end, prot, &offset, &major, &minor, &inode),
                  7)
            << line;
        const Mapping& m = maps[i];
        EXPECT_EQ(m.range, (Range{begin, end})) << line;
        EXPECT_EQ(m.offset, offset) << line;
        EXPECT_EQ(m.device_major, major) << line;
        EXPECT_EQ(m.device_minor, minor) << line;
        EXPECT_EQ(m.inode, inode) << line;
        EXPECT_EQ((m.prot & PROT_WRITE) != 0, prot[1] == 'w') << line;
        EXPECT_EQ(m.shared, prot[3] == 's') << line;
        EXPECT_TRUE(line.ends_with(m.name)) << line;
    }
    EXPECT_EQ(i, maps.size());
}
