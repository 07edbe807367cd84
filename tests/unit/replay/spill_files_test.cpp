// Files of a message log: what goes in comes out, also after a restart; damage is found; nothing is left.
#include "front/logged/spill_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

namespace fermata::front::logged {
namespace {

using replay::Bytes;
using replay::Spilled;

int newest = -1;  // a second descriptor of the newest file

int make_file() noexcept {
    char name[] = "/tmp/spill-XXXXXX";
    const int made = ::mkstemp(name);
    ::unlink(name);
    if (newest >= 0) ::close(newest);
    newest = ::dup(made);
    return made;
}
int no_file() noexcept { return -ENOSPC; }
int full_device() noexcept { return ::open("/dev/full", O_RDWR); }

int descriptors() {
    int count = 0;
    for (int fd = 0; fd < 256; ++fd) count += ::fcntl(fd, F_GETFD) >= 0;
    return count;
}
size_t mappings_of_files_gone() {
    FILE* maps = std::fopen("/proc/self/maps", "r");
    size_t count = 0;
    char line[4096];
    while (std::fgets(line, sizeof line, maps) != nullptr)
        count += std::string(line).find("/tmp/spill-") < 4096;
    std::fclose(maps);
    return count;
}

Bytes some(size_t size, uint8_t seed) {
    Bytes bytes(size);
    for (size_t i = 0; i < size; ++i)
        bytes[i] = static_cast<uint8_t>(seed = static_cast<uint8_t>(seed * 37 + 11));
    return bytes;
}
Spilled put(SpillFiles& files, const Bytes& bytes) {
    uint64_t place = 0;
    EXPECT_EQ(files.append(make_file, bytes.data(), bytes.size(), &place), 0);
    return {place, bytes.size(), SpillFiles::digest_of(bytes.data(), bytes.size())};
}

TEST(SpillFiles, WhatGoesInComesOutAndNothingIsLeft) {
    make_file();
    const int before = descriptors() - 1;  // of the file just made
    SpillFiles files;
    std::vector<Spilled> all;
    for (uint8_t i = 0; i < 5; ++i) all.push_back(put(files, some(i == 3 ? 70u << 20 : 1000u * i + 1, i)));
    EXPECT_EQ(files.files(), 3u) << "a large one begins another file";
    Bytes bytes;
    for (uint8_t i : {4, 0, 3, 2, 1}) {
        ASSERT_TRUE(files.read(all[i], &bytes));
        EXPECT_EQ(bytes, some(i == 3 ? 70u << 20 : 1000u * i + 1, i));
    }
    EXPECT_FALSE(files.is_open()) << "reading closes";
    all.push_back(put(files, some(10, 9)));
    EXPECT_EQ(files.files(), 4u);
    for (const Spilled& one : all) files.forget(one);
    EXPECT_EQ(files.files(), 0u);
    EXPECT_EQ(mappings_of_files_gone(), 0u);
    EXPECT_EQ(descriptors(), before + 1) << "newest";
}

TEST(SpillFiles, DamageIsFound) {
    SpillFiles files;
    const Spilled first = put(files, some(20000, 1)), second = put(files, some(20000, 2));
    Bytes bytes;
    ASSERT_EQ(::pwrite(newest, "x", 1, 25000), 1);
    EXPECT_TRUE(files.read(first, &bytes));
    EXPECT_FALSE(files.read(second, &bytes)) << "another byte";
    ASSERT_EQ(::ftruncate(newest, 4096), 0);
    EXPECT_FALSE(files.read(first, &bytes)) << "cut, and no signal";
    EXPECT_FALSE(files.read(Spilled{first.place + 40000, 100, 0}, &bytes)) << "behind the end";
    EXPECT_FALSE(files.read(Spilled{uint64_t{7} << 44, 100, 0}, &bytes)) << "no such file";
    files.forget(first);
    files.forget(second);
}

TEST(SpillFiles, AFullDiskLosesNothing) {
    SpillFiles files;
    const Bytes bytes = some(100, 1);
    uint64_t place = 0;
    EXPECT_EQ(files.append(no_file, bytes.data(), bytes.size(), &place), -ENOSPC);
    EXPECT_EQ(files.append(full_device, bytes.data(), bytes.size(), &place), -ENOSPC);
    EXPECT_EQ(files.files(), 0u);
    const Spilled there = put(files, bytes);
    Bytes read;
    EXPECT_TRUE(files.read(there, &read));
    EXPECT_EQ(read, bytes);
    files.forget(there);
}

// An image has the mapping's content, and a restart anonymous memory at its place.
TEST(SpillFiles, AfterARestartTheyAreFilesAgain) {
    SpillFiles files;
    const Spilled one = put(files, some(50000, 5));
    ASSERT_TRUE(files.close());
    EXPECT_EQ(files.leave_memory(no_file), 0) << "they are files";
    // What the restart does.
    FILE* maps = std::fopen("/proc/self/maps", "r");
    unsigned long begin = 0, end = 0;
    char line[4096];
    while (std::fgets(line, sizeof line, maps) != nullptr)
        if (std::string(line).find("/tmp/spill-") < sizeof line) std::sscanf(line, "%lx-%lx", &begin, &end);
    std::fclose(maps);
    ASSERT_NE(begin, 0u);
    auto* at = reinterpret_cast<uint8_t*>(begin);
    const Bytes content(at, at + (end - begin));
    ASSERT_NE(::mmap(at, end - begin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              MAP_FAILED);
    std::copy(content.begin(), content.end(), at);
    ::mprotect(at, end - begin, PROT_READ);
    EXPECT_EQ(mappings_of_files_gone(), 0u);
    EXPECT_EQ(files.leave_memory(no_file), -ENOSPC);
    Bytes bytes;
    EXPECT_TRUE(files.read(one, &bytes)) << "still in memory";
    EXPECT_EQ(files.leave_memory(make_file), 0);
    EXPECT_EQ(mappings_of_files_gone(), 1u);
    EXPECT_EQ(files.leave_memory(no_file), 0);
    ASSERT_TRUE(files.read(one, &bytes));
    EXPECT_EQ(bytes, some(50000, 5));
    files.forget(one);
    EXPECT_EQ(mappings_of_files_gone(), 0u);
}

}  // namespace
}  // namespace fermata::front::logged
