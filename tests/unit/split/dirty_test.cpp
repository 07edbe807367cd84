// Which pages count as unchanged (src/split/memory/dirty.h): never one that has been written.
#include "split/memory/dirty.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "base/error.h"

using namespace fermata::split;

namespace {

std::unique_ptr<DirtyTracker> tracker_if_any() {
    try {
        return std::make_unique<DirtyTracker>();
    } catch (const fermata::Error&) {
        return {};
    }
}

std::set<size_t> pages_of(const std::vector<Range>& ranges, const void* from) {
    std::set<size_t> pages;
    auto base = reinterpret_cast<uint64_t>(from);
    for (const Range& range : ranges)
        for (uint64_t at = range.begin; at < range.end; at += kPage) pages.insert((at - base) / kPage);
    return pages;
}

class Dirty : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!tracker) GTEST_SKIP() << "this kernel cannot follow pages";
    }
    char* map(size_t pages, int fd = -1) {
        int flags = MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0);
        void* at = mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, flags, fd, 0);
        return static_cast<char*>(at);
    }
    DirtyTracker::Seen look(char* at, size_t pages, const char* name = "") {
        MapEntry entry;
        entry.range = {reinterpret_cast<uint64_t>(at), reinterpret_cast<uint64_t>(at) + pages * kPage};
        entry.prot = PROT_READ | PROT_WRITE;
        entry.name = name;
        auto seen = tracker->look(entry);
        EXPECT_TRUE(seen);
        return seen ? *seen : DirtyTracker::Seen{};
    }
    std::unique_ptr<DirtyTracker> tracker = tracker_if_any();
};

using Pages = std::set<size_t>;

TEST_F(Dirty, WrittenPagesAndNoOthers) {
    char* at = map(64);
    for (size_t i : {1, 2, 3, 40}) at[i * kPage] = 1;
    volatile char zero = at[50 * kPage];  // the zero page
    (void)zero;
    auto first = look(at, 64);
    EXPECT_EQ(pages_of(first.touched, at), (Pages{1, 2, 3, 40}));
    EXPECT_TRUE(first.unchanged.empty());
    EXPECT_EQ(pages_of(look(at, 64).unchanged, at), (Pages{1, 2, 3, 40}));
    at[2 * kPage] = 2;
    at[50 * kPage] = 1;
    at[60 * kPage] = 1;
    auto third = look(at, 64);
    EXPECT_EQ(pages_of(third.touched, at), (Pages{1, 2, 3, 40, 50, 60}));
    EXPECT_EQ(pages_of(third.unchanged, at), (Pages{1, 3, 40}));
    EXPECT_EQ(pages_of(look(at, 64).unchanged, at), (Pages{1, 2, 3, 40, 50, 60}));
}

TEST_F(Dirty, MoreRegionsThanOneScanTakes) {
    constexpr size_t kMany = 8192;
    char* at = map(kMany);
    memset(at, 1, kMany * kPage);
    look(at, kMany);
    Pages same;
    for (size_t i = 0; i < kMany; ++i)
        if (i % 2)
            at[i * kPage] = 2;
        else
            same.insert(i);
    auto seen = look(at, kMany);
    EXPECT_EQ(pages_of(seen.unchanged, at), same);
    EXPECT_EQ(seen.touched.size(), 1u);
}

TEST_F(Dirty, MemoryOfAnotherMappingIsNew) {
    char* at = map(32);
    memset(at, 1, 16 * kPage);
    look(at, 32);
    look(at, 32);
    // In its place, with other content.
    mmap(at, 8 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memset(at, 2, 8 * kPage);
    EXPECT_TRUE(look(at, 8).unchanged.empty());
    // Moved over pages that were known there.
    char* other = map(8);
    memset(other, 3, 8 * kPage);
    look(other, 8);
    ASSERT_EQ(mremap(other, 8 * kPage, 8 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, at + 8 * kPage),
              at + 8 * kPage);
    EXPECT_TRUE(look(at + 8 * kPage, 8).unchanged.empty());
    EXPECT_EQ(pages_of(look(at + 8 * kPage, 8).unchanged, at), (Pages{8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST_F(Dirty, GivenBackIsNotUnchanged) {
    char* at = map(8);
    memset(at, 1, 8 * kPage);
    look(at, 8);
    madvise(at + 2 * kPage, 2 * kPage, MADV_DONTNEED);
    EXPECT_EQ(pages_of(look(at, 8).unchanged, at), (Pages{0, 1, 4, 5, 6, 7}));
    at[2 * kPage] = 1;
    EXPECT_EQ(pages_of(look(at, 8).unchanged, at), (Pages{0, 1, 4, 5, 6, 7}));
}

TEST_F(Dirty, PagesOfFiles) {
    char name[] = "/tmp/fermata-dirty-XXXXXX";
    int fd = mkstemp(name);
    unlink(name);
    ASSERT_EQ(ftruncate(fd, 8 * kPage), 0);
    char* at = map(8, fd);
    at[3 * kPage] = 1;
    auto first = look(at, 8, name);
    EXPECT_EQ(pages_of(first.own, at), (Pages{3}));
    at[4 * kPage] = 1;
    auto second = look(at, 8, name);
    EXPECT_EQ(pages_of(second.touched, at).size(), 8u);
    EXPECT_EQ(pages_of(second.unchanged, at).count(4), 0u);
    EXPECT_EQ(pages_of(second.unchanged, at).count(3), 1u);
    // Given back, the page is the file's again: what the last look saw is gone.
    madvise(at + 3 * kPage, kPage, MADV_DONTNEED);
    ASSERT_EQ(at[3 * kPage], 0);
    EXPECT_EQ(pages_of(look(at, 8, name).unchanged, at).count(3), 0u);
    close(fd);
}

// A look and its protection are one step: what is written at any moment is in the next look, or was seen by
// whoever copied the page after this one.
TEST_F(Dirty, NothingIsMissedWhileOthersWrite) {
    constexpr size_t kMany = 512;
    char* at = map(kMany);
    memset(at, 1, kMany * kPage);
    std::vector<char> kept(kMany * kPage);
    std::atomic<bool> stop = false;
    std::thread writer([&] {
        for (uint32_t n = 1; !stop; ++n)
            __atomic_store_n(reinterpret_cast<uint32_t*>(at + n * 37 % kMany * kPage), n, __ATOMIC_RELAXED);
    });
    auto copy = [&] {
        Pages same = pages_of(look(at, kMany).unchanged, at);
        for (size_t i = 0; i < kMany; ++i)
            if (!same.count(i)) memcpy(kept.data() + i * kPage, at + i * kPage, kPage);
    };
    for (int round = 0; round < 300; ++round) copy();
    stop = true;
    writer.join();
    copy();
    EXPECT_EQ(memcmp(kept.data(), at, kMany * kPage), 0);
}

}  // namespace
