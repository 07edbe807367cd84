// Which pages count as unchanged (src/split/memory/dirty.h): never one that has been written.
#include "split/memory/dirty.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/page.h"

using fermata::Range;
using namespace fermata::split;
using fermata::kPage;

namespace {

std::set<size_t> pages_of(const std::vector<Range>& ranges, const void* from) {
    std::set<size_t> pages;
    auto base = reinterpret_cast<uint64_t>(from);
    for (const Range& range : ranges)
        for (uint64_t at = range.begin(); at < range.end(); at += kPage) pages.insert((at - base) / kPage);
    return pages;
}

struct Way {
    const char* name;
    std::unique_ptr<PageMarks> (*marks)();
    bool at_once;  // looks, and marks what it has looked at, in one step
    bool files;    // follows mappings of files
};
std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

constexpr size_t kPagesOfHuge = fermata::kHugePageSize / kPage;

// Of the mapping that begins at `at`.
size_t huge_pages(const void* at) {
    std::ifstream smaps("/proc/self/smaps");
    std::string line, begin = fmt::format("{:x}-", reinterpret_cast<uint64_t>(at));
    for (bool ours = false; std::getline(smaps, line);) {
        if (line.find("-") != std::string::npos && std::isxdigit(line[0]) && line.find(":") > line.find("-"))
            ours = line.starts_with(begin);
        unsigned long kib = 0;
        if (ours && std::sscanf(line.c_str(), "AnonHugePages: %lu", &kib) == 1)
            return kib * 1024 / fermata::kHugePageSize;
    }
    return 0;
}

class Dirty : public ::testing::TestWithParam<Way> {
  protected:
    void SetUp() override {
        try {
            tracker = std::make_unique<DirtyTracker>(GetParam().marks());
        } catch (const fermata::Error& error) {
            GTEST_SKIP() << error.what();
        }
    }
    char* map(size_t pages, int fd = -1, size_t alignment = kPage) {
        int flags = MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0);
        size_t size = pages * kPage + alignment - kPage;
        auto at = reinterpret_cast<uint64_t>(mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, 0));
        void* aligned = reinterpret_cast<void*>((at + alignment - 1) / alignment * alignment);
        madvise(aligned, pages * kPage, MADV_NOHUGEPAGE);
        return static_cast<char*>(aligned);
    }
    std::optional<SeenPages> look_if_any(char* at, size_t pages, const char* name = "", uint32_t advice = 0) {
        MapEntry entry;
        entry.range = {reinterpret_cast<uint64_t>(at), reinterpret_cast<uint64_t>(at) + pages * kPage};
        entry.prot = PROT_READ | PROT_WRITE;
        entry.advice = advice;
        entry.name = name;
        tracker->begin_round();
        auto seen = tracker->look(entry);
        tracker->end_round();
        return seen;
    }
    SeenPages look(char* at, size_t pages, const char* name = "") {
        auto seen = look_if_any(at, pages, name);
        EXPECT_TRUE(seen);
        return seen ? *seen : SeenPages{};
    }
    std::unique_ptr<DirtyTracker> tracker;
};

INSTANTIATE_TEST_SUITE_P(Ways, Dirty,
                         ::testing::Values(Way{"protected", protected_pages, true, true},
                                           Way{"soft_dirty", soft_dirty_pages, false, false}),
                         [](const auto& way) { return std::string(way.param.name); });

using Pages = std::set<size_t>;

TEST_P(Dirty, WrittenPagesAndNoOthers) {
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

TEST_P(Dirty, MoreRegionsThanOneScanTakes) {
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

TEST_P(Dirty, MemoryOfAnotherMappingIsNew) {
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

// Linux moves whole page tables where it can, with the marks of what is in them.
TEST_P(Dirty, WholePageTablesOfAnotherMappingAreNew) {
    constexpr size_t kMany = 1024, kTable = 512;
    char* at = map(kMany, -1, kTable * kPage);
    char* other = map(kMany, -1, kTable * kPage);
    memset(at, 1, kMany * kPage);
    memset(other, 2, kMany * kPage);
    for (int i = 0; i < 2; ++i) {
        look(at, kMany);
        look(other, kMany);
    }
    ASSERT_EQ(mremap(other, kMany * kPage, kMany * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, at), at);
    EXPECT_TRUE(look(at, kMany).unchanged.empty());
    EXPECT_EQ(pages_of(look(at, kMany).unchanged, at).size(), kMany);
}

TEST_P(Dirty, GivenBackIsNotUnchanged) {
    char* at = map(8);
    memset(at, 1, 8 * kPage);
    look(at, 8);
    madvise(at + 2 * kPage, 2 * kPage, MADV_DONTNEED);
    volatile char zero = at[3 * kPage];  // the zero page
    (void)zero;
    EXPECT_EQ(pages_of(look(at, 8).unchanged, at), (Pages{0, 1, 4, 5, 6, 7}));
    at[2 * kPage] = 1;
    EXPECT_EQ(pages_of(look(at, 8).unchanged, at), (Pages{0, 1, 4, 5, 6, 7}));
}

TEST_P(Dirty, WrittenAfterItWasProtected) {
    char* at = map(8);
    memset(at, 1, 8 * kPage);
    look(at, 8);
    mprotect(at, 8 * kPage, PROT_READ);
    mprotect(at, 8 * kPage, PROT_READ | PROT_WRITE);
    at[5 * kPage] = 2;
    EXPECT_EQ(pages_of(look(at, 8).unchanged, at), (Pages{0, 1, 2, 3, 4, 6, 7}));
}

TEST_P(Dirty, LookedAtOnceMoreAfterTheRound) {
    char* at = map(8);
    memset(at, 1, 8 * kPage);
    look(at, 8);
    at[kPage] = 2;
    look(at, 8);
    at[2 * kPage] = 2;
    MapEntry entry;
    entry.range = {reinterpret_cast<uint64_t>(at), reinterpret_cast<uint64_t>(at) + 8 * kPage};
    entry.prot = PROT_READ | PROT_WRITE;
    EXPECT_EQ(pages_of(tracker->look(entry)->unchanged, at), (Pages{0, 1, 3, 4, 5, 6, 7}));
}

// Whoever else in this process uses soft-dirty bits clears ours as well.
TEST_P(Dirty, WhatSomebodyElseHasClearedIsNotTrusted) {
    char* at = map(8);
    memset(at, 1, 8 * kPage);
    look(at, 8);
    at[kPage] = 2;
    int fd = open("/proc/self/clear_refs", O_WRONLY);
    ASSERT_EQ(write(fd, "4", 1), 1);
    close(fd);
    EXPECT_EQ(pages_of(look(at, 8).unchanged, at).count(1), 0u);
    EXPECT_EQ(pages_of(look(at, 8).unchanged, at).size(), 8u);
}

// The program's own watch: soft-dirty bits cannot tell its registrations from ours.
TEST_P(Dirty, BesideAnotherWatchNothingIsUnchangedByMistake) {
    int other = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
    ASSERT_GE(other, 0);
    uffdio_api api{UFFD_API, 0, 0};
    ASSERT_EQ(ioctl(other, UFFDIO_API, &api), 0);
    char* at = map(8);
    memset(at, 1, 8 * kPage);
    uffdio_register all{{reinterpret_cast<uint64_t>(at), 8 * kPage}, UFFDIO_REGISTER_MODE_WP, 0};
    if (ioctl(other, UFFDIO_REGISTER, &all) == 0) {
        EXPECT_FALSE(look_if_any(at, 8));
        EXPECT_FALSE(look_if_any(at, 8));
    }
    close(other);
    look(at, 8);
    EXPECT_EQ(look(at, 8).unchanged.size(), 1u);
}

TEST_P(Dirty, HugePagesStayWhole) {
    constexpr size_t kHuge = kPagesOfHuge;
    char* at = map(2 * kHuge, -1, kHuge * kPage);
    if (madvise(at, 2 * kHuge * kPage, MADV_HUGEPAGE) != 0) GTEST_SKIP() << "no huge pages";
    memset(at, 1, 2 * kHuge * kPage);
    auto first = look_if_any(at, 2 * kHuge, "", kHugePage);
    EXPECT_EQ(first.has_value(), !GetParam().at_once);  // what would split them leaves them alone
    at[kPage] = 2;
    if (auto second = look_if_any(at, 2 * kHuge, "", kHugePage)) {
        Pages same = pages_of(second->unchanged, at);
        EXPECT_EQ(same.count(1), 0u);
        EXPECT_EQ(same.count(kHuge), 1u);
    }
    EXPECT_EQ(huge_pages(at), 2u);
}

TEST_P(Dirty, PagesOfFiles) {
    if (!GetParam().files) {
        char* at = map(1, open("/proc/self/exe", O_RDONLY));
        EXPECT_FALSE(look_if_any(at, 1, "/some/file"));
        return;
    }
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

// What is written at any moment is in the next look, or was seen by whoever copied the page after this one.
// Where a look and its marks are not one step, nobody may write meanwhile.
TEST_P(Dirty, NothingIsMissedWhileOthersWrite) {
    constexpr size_t kMany = 512;
    char* at = map(kMany);
    memset(at, 1, kMany * kPage);
    std::vector<char> kept(kMany * kPage);
    std::atomic<bool> stop = false;
    std::mutex still;
    std::thread writer([&] {
        for (uint32_t n = 1; !stop; ++n) {
            std::unique_lock hold(still, std::defer_lock);
            if (!GetParam().at_once) hold.lock();
            __atomic_store_n(reinterpret_cast<uint32_t*>(at + n * 37 % kMany * kPage), n, __ATOMIC_RELAXED);
        }
    });
    auto copy = [&] {
        std::unique_lock hold(still, std::defer_lock);
        if (!GetParam().at_once) hold.lock();
        Pages same = pages_of(look(at, kMany).unchanged, at);
        hold = {};
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
