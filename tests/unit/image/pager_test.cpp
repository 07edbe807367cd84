// Demand paging in this process: what comes late is what an eager read gives, whatever the program does with
// its memory meanwhile.
#include "image/pager.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "image/save_options.h"
#include "image/whereabouts.h"

namespace fermata::image {
namespace {

TEST(Whereabouts, FollowsWhatIsUnmappedAndMoved) {
    Whereabouts w;
    w.add({100, 150});
    w.add({200, 300});
    EXPECT_EQ(w.was_of(149), 149u);
    EXPECT_FALSE(w.was_of(150));
    w.forget({220, 240});
    EXPECT_FALSE(w.was_of(230));
    EXPECT_EQ(w.was_of(240), 240u);
    w.move(130, 1000, 80);  // the end of the first and the beginning of the second
    EXPECT_FALSE(w.was_of(140));
    EXPECT_EQ(w.was_of(1005), 135u);
    EXPECT_FALSE(w.was_of(1050));
    EXPECT_EQ(w.was_of(1075), 205u);
    std::vector<Whereabouts::Part> parts = w.now_of({100, 300});
    uint64_t sum = 0;
    for (const auto& part : parts) sum += part.length;
    EXPECT_EQ(sum, 130u);
    w.move(1000, 1010, 20);  // overlapping itself
    EXPECT_EQ(w.was_of(1010), 130u);
    EXPECT_FALSE(w.was_of(1009));
    w.forget({0, 5000});
    EXPECT_TRUE(w.now_of({0, 5000}).empty());
}

// Against a table with an entry per address.
TEST(Whereabouts, AgreesWithATableOfAllAddresses) {
    std::mt19937 random(5);
    for (int round = 0; round < 200; ++round) {
        Whereabouts w;
        std::vector<uint64_t> was(400, 0);
        for (uint64_t at : {10, 60, 150}) {
            w.add(Range::sized(at, 40));
            for (uint64_t i = at; i < at + 40; ++i) was[i] = i;
        }
        for (int step = 0; step < 6; ++step) {
            uint64_t from = random() % 300, length = 1 + random() % 60, to = random() % 300;
            if (random() % 2) {
                w.forget(Range::sized(from, length));
                std::fill_n(was.begin() + static_cast<long>(from), length, 0);
            } else {
                if (from < to + length && to < from + length) continue;  // mremap refuses this
                w.move(from, to, length);
                for (uint64_t i = 0; i < length; ++i) was[to + i] = std::exchange(was[from + i], 0);
            }
        }
        for (uint64_t i = 0; i < was.size(); ++i) ASSERT_EQ(w.was_of(i).value_or(0), was[i]) << round;
        size_t now = 0;
        for (const auto& part : w.now_of({0, 400}))
            for (uint64_t i = 0; i < part.length; ++i, ++now) ASSERT_EQ(was[part.now + i], part.was + i);
        ASSERT_EQ(now,
                  static_cast<size_t>(std::count_if(was.begin(), was.end(), [](auto n) { return n != 0; })));
    }
}

constexpr uint64_t kPages = 6000;
constexpr uint64_t kSize = kPages * kPage;

// An image of a memory with large and small runs and zeros, and a mapping where it belongs.
class PagerTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string why;
        Fd fd(open_faults(why));
        if (!fd) GTEST_SKIP() << why;
        char name[] = "/tmp/fermata-pager-XXXXXX";
        directory_ = mkdtemp(name);
        target_ = map();
        content_.assign(kSize, 0);
        std::mt19937_64 random(17);
        for (uint64_t page = 0; page < kPages;) {
            uint64_t n = random() % 3 ? 1 + random() % 6 : 1 + random() % 900;
            bool zero = random() % 3 == 0;
            for (; n > 0 && page < kPages; --n, ++page)
                for (uint64_t i = 0; i < kPage && !zero; i += 8) {
                    uint64_t value = (page << 32 | i) + random() % 100 + 1;
                    std::memcpy(content_.data() + page * kPage + i, &value, 8);
                }
        }
    }
    void TearDown() override {
        if (target_) ::munmap(target_, kSize);
        if (!directory_.empty()) std::filesystem::remove_all(directory_);
    }

    static char* map() {
        void* p = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
    }
    std::string path() const { return directory_ + "/rank-000000.img"; }
    void write(const std::string& words = "") {
        WriteOptions options = SaveOptions::parse(words).write;
        options.sync = false;
        Writer writer(path(), {}, options);
        writer.run(reinterpret_cast<uint64_t>(target_), content_.data(), kSize);
        writer.finish();
    }
    std::unique_ptr<Pager> page(uint64_t first = 0, uint64_t end = kPages) {
        Pager::Hooks hooks;
        hooks.failed = [](const std::string& line) {
            dprintf(2, "failed: %s\n", line.c_str());
            _exit(77);
        };
        hooks.wiped_in_children = [this] { return wiped_; };
        hooks.huge = huge_;
        auto at = reinterpret_cast<uint64_t>(target_);
        return std::make_unique<Pager>(std::make_unique<Reader>(path()),
                                       Pager::Areas{{at + first * kPage, at + end * kPage}},
                                       std::move(hooks));
    }
    static void wait(Pager& pager) {
        for (int i = 0; i < 20000 && !pager.finished(); ++i) ::usleep(1000);
        ASSERT_TRUE(pager.finished());
    }
    bool same(const char* now, uint64_t page, uint64_t pages = 1) {
        return std::memcmp(now, content_.data() + page * kPage, pages * kPage) == 0;
    }
    static bool zeros(const char* now, uint64_t pages) {
        for (uint64_t i = 0; i < pages * kPage; ++i)
            if (now[i]) return false;
        return true;
    }
    // Pages that hold something.
    uint64_t full_page(uint64_t from) {
        while (zeros(content_.data() + from * kPage, 1)) ++from;
        return from;
    }

    std::string directory_;
    char* target_ = nullptr;
    std::vector<char> content_;
    Pager::Areas wiped_, huge_;
};

TEST_F(PagerTest, GivesWhatAnEagerReadGives) {
    for (const char* words : {"", "compress=shuffle-lz4", "compress=zstd io=buffered threads=1"}) {
        std::filesystem::remove(path());
        write(words);
        ASSERT_EQ(::madvise(target_, kSize, MADV_DONTNEED), 0);
        auto pager = page(100, kPages - 70);  // the rest is read at once
        std::mt19937 random(3);
        for (int i = 0; i < 300; ++i) {
            uint64_t at = random() % kPages;
            ASSERT_TRUE(same(target_ + at * kPage, at)) << at;
        }
        pager->prefetch(2);
        std::memset(target_ + 500 * kPage, 7, kPage);
        wait(*pager);
        std::memcpy(content_.data() + 500 * kPage, target_ + 500 * kPage, kPage);
        ASSERT_TRUE(same(target_, 0, kPages)) << words;
    }
}

// KiB of huge pages in this process's private memory.
uint64_t huge_kib() {
    std::ifstream rollup("/proc/self/smaps_rollup");
    for (std::string word; rollup >> word;)
        if (word == "AnonHugePages:") {
            uint64_t kib = 0;
            rollup >> kib;
            return kib;
        }
    return 0;
}

TEST_F(PagerTest, HugePagesComeBackWhereTheyWere) {
    write();
    for (bool asked : {false, true}) {
        ASSERT_EQ(::munmap(target_, kSize), 0);
        void* again = ::mmap(target_, kSize, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        ASSERT_EQ(again, target_);
        ASSERT_EQ(::madvise(target_, kSize, asked ? MADV_HUGEPAGE : MADV_NOHUGEPAGE), 0);
        auto at = reinterpret_cast<uint64_t>(target_);
        if (asked) huge_ = {{at, at + kSize}};
        uint64_t before = huge_kib();
        auto pager = page();
        pager->prefetch(1);
        wait(*pager);
        ASSERT_TRUE(same(target_, 0, kPages));
        if (asked)
            EXPECT_GE(huge_kib(), before + (2 << 10)) << "of " << kSize / 1024;
        else
            EXPECT_EQ(huge_kib(), before);
    }
}

TEST_F(PagerTest, SystemCallsWaitForMemory) {
    write();
    auto pager = page();
    uint64_t at = full_page(3000);
    int pair[2];
    ASSERT_EQ(::pipe(pair), 0);
    ASSERT_EQ(::write(pair[1], target_ + at * kPage, kPage), static_cast<ssize_t>(kPage));
    std::vector<char> got(kPage);
    ASSERT_EQ(::read(pair[0], got.data(), kPage), static_cast<ssize_t>(kPage));
    EXPECT_TRUE(same(got.data(), at));
    ASSERT_EQ(::write(pair[1], "abc", 3), 3);
    uint64_t other = full_page(10);
    ASSERT_EQ(::read(pair[0], target_ + other * kPage + 5, 3), 3);
    std::memcpy(content_.data() + other * kPage + 5, "abc", 3);
    pager->prefetch(1);
    wait(*pager);
    EXPECT_TRUE(same(target_, 0, kPages));
    ::close(pair[0]), ::close(pair[1]);
}

TEST_F(PagerTest, WhatTheProgramEmptiesOrMapsAnewStaysSo) {
    write();
    auto pager = page();
    ASSERT_EQ(::madvise(target_ + 200 * kPage, 1500 * kPage, MADV_DONTNEED), 0);
    ASSERT_EQ(::munmap(target_ + 3000 * kPage, 900 * kPage), 0);
    ASSERT_NE(::mmap(target_ + 3100 * kPage, 700 * kPage, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              MAP_FAILED);
    target_[3200 * kPage] = 5;
    ASSERT_EQ(::mprotect(target_ + 4500 * kPage, 300 * kPage, PROT_READ), 0);
    ASSERT_EQ(::mprotect(target_ + 4600 * kPage, 10 * kPage, PROT_NONE), 0);
    EXPECT_TRUE(zeros(target_ + 300 * kPage, 20));
    pager->prefetch(2);
    wait(*pager);
    ASSERT_EQ(::mprotect(target_ + 4600 * kPage, 10 * kPage, PROT_READ), 0);
    EXPECT_EQ(target_[3200 * kPage], 5);
    target_[3200 * kPage] = 0;
    EXPECT_TRUE(same(target_, 0, 200));
    EXPECT_TRUE(zeros(target_ + 200 * kPage, 1500));
    EXPECT_TRUE(same(target_ + 1700 * kPage, 1700, 1300));
    EXPECT_TRUE(zeros(target_ + 3100 * kPage, 700));
    EXPECT_TRUE(same(target_ + 3900 * kPage, 3900, kPages - 3900));
}

TEST_F(PagerTest, WhatTheProgramMovesComesToItsNewPlace) {
    write();
    auto pager = page();
    char* there = map();
    void* moved =
        ::mremap(target_ + 1000 * kPage, 2000 * kPage, 2000 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, there);
    ASSERT_EQ(moved, there);
    // Once more, a part of it, and larger than before.
    char* again = map();
    moved = ::mremap(there + 500 * kPage, 100 * kPage, 150 * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, again);
    ASSERT_EQ(moved, again);
    EXPECT_TRUE(same(there + 20 * kPage, 1020, 3));
    pager->prefetch(2);
    wait(*pager);
    EXPECT_TRUE(same(target_, 0, 1000));
    EXPECT_TRUE(same(there, 1000, 500));
    EXPECT_TRUE(same(again, 1500, 100));
    EXPECT_TRUE(zeros(again + 100 * kPage, 50));
    EXPECT_TRUE(same(there + 600 * kPage, 1600, 1400));
    EXPECT_TRUE(same(target_ + 3000 * kPage, 3000, kPages - 3000));
    ::munmap(there, kSize), ::munmap(again, kSize);
}

TEST_F(PagerTest, ChildrenGetTheirMemoryToo) {
    write();
    auto pager = page();
    auto at = reinterpret_cast<uint64_t>(target_);
    uint64_t emptied = full_page(4000);
    wiped_ = {{at + 2000 * kPage, at + 2100 * kPage}};
    target_[0] = 9;
    int go[2];
    ASSERT_EQ(::pipe(go), 0);
    pid_t child = ::fork();
    if (child == 0) {
        // What the child changes is its own; a grandchild sees it.
        if (target_[0] != 9) _exit(1);
        target_[kPage] = 11;
        ::madvise(target_ + emptied * kPage, kPage, MADV_DONTNEED);
        pid_t grandchild = ::fork();
        char byte;
        if (::read(go[0], &byte, 1) != 1) _exit(2);
        if (target_[kPage] != 11) _exit(3);
        if (!same(target_ + 2 * kPage, 2, 1998)) _exit(4);
        if (!zeros(target_ + 2000 * kPage, 100)) _exit(5);
        if (!same(target_ + 2100 * kPage, 2100, emptied - 2100)) _exit(6);
        if (!zeros(target_ + emptied * kPage, 1)) _exit(7);
        if (!same(target_ + (emptied + 1) * kPage, emptied + 1, kPages - emptied - 1)) _exit(8);
        int status = 0;
        if (grandchild && (::waitpid(grandchild, &status, 0) < 0 || status)) _exit(9);
        _exit(0);
    }
    pid_t short_lived = ::fork();
    if (short_lived == 0) _exit(0);
    ::waitpid(short_lived, nullptr, 0);
    pager->prefetch(2);
    ASSERT_EQ(::write(go[1], "xx", 2), 2);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    wait(*pager);
    target_[0] = content_[0];
    EXPECT_TRUE(same(target_, 0, kPages));
    ::close(go[0]), ::close(go[1]);
}

// A process is killed before all has come: its child, and the child's child, find what they have read and
// what is zero, and never zeros for what they have not.
TEST_F(PagerTest, ChildrenOfAKilledProcessNeverSeeZeros) {
    write();
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    uint64_t read = full_page(10), missing = full_page(read + kLargestBlock / kPage);
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    for (bool reads_in_kernel : {false, true}) {
        pid_t program = ::fork();
        if (program == 0) {
            auto pager = page();
            pid_t me = ::getpid();
            pid_t child = ::fork();
            if (child == 0) {
                ::signal(SIGBUS, SIG_DFL);  // a sanitizer's handler would end it in another way
                ::fork();
                if (!same(target_ + read * kPage, read)) _exit(1);
                pid_t self = ::getpid();
                [[maybe_unused]] ssize_t n = ::write(ready[1], &self, sizeof self);
                for (int i = 0; i < 20000 && ::kill(me, 0) == 0; ++i) ::usleep(1000);
                if (!same(target_ + read * kPage, read)) _exit(2);
                if (reads_in_kernel) {
                    int pair[2];
                    if (::pipe(pair) != 0) _exit(3);
                    _exit(::write(pair[1], target_ + missing * kPage, 8) < 0 && errno == EFAULT ? 40 : 4);
                }
                _exit(target_[missing * kPage] == content_[missing * kPage] ? 5 : 6);
            }
            for (;;) ::pause();
        }
        std::vector<pid_t> children(2);
        for (pid_t& child : children)
            ASSERT_EQ(::read(ready[0], &child, sizeof child), ssize_t(sizeof child));
        ASSERT_EQ(::kill(program, SIGKILL), 0);
        ASSERT_EQ(::waitpid(program, nullptr, 0), program);
        for (pid_t child : children) {
            int status = 0;
            pid_t ended;  // the grandchild is not ours before its parent has ended
            for (int i = 0; i < 20000 && (ended = ::waitpid(child, &status, 0)) < 0; ++i) ::usleep(1000);
            ASSERT_EQ(ended, child);
            if (reads_in_kernel)
                EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 40) << std::hex << status;
            else
                EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) << std::hex << status;
        }
    }
    // The keepers end, too: they are nobody else's children.
    pid_t last;
    for (int i = 0; i < 5000 && (last = ::waitpid(-1, nullptr, WNOHANG | __WALL)) >= 0; ++i) ::usleep(1000);
    EXPECT_EQ(last, -1);
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    ::close(ready[0]), ::close(ready[1]);
}

// Threads that change the memory in all ways while it is read.
TEST_F(PagerTest, ChangesWhileItIsRead) {
    write("compress=lz4");
    for (unsigned seed = 1; seed <= 8; ++seed) {
        ASSERT_EQ(::madvise(target_, kSize, MADV_DONTNEED), 0);
        auto pager = page();
        pager->prefetch(1 + seed % 3);
        std::vector<int> state(kPages, 0);  // 0 as it was, 1 zeros
        std::mt19937 random(seed);
        char* spare = map();
        for (int step = 0; step < 120; ++step) {
            uint64_t first = random() % (kPages - 64), n = 1 + random() % 64;
            char* here = target_ + first * kPage;
            switch (random() % 5) {
                case 0:
                    ASSERT_EQ(::madvise(here, n * kPage, MADV_DONTNEED), 0);
                    std::fill_n(state.begin() + static_cast<long>(first), n, 1);
                    break;
                case 1:
                    ASSERT_EQ(::mmap(here, n * kPage, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                              here);
                    std::fill_n(state.begin() + static_cast<long>(first), n, 1);
                    break;
                case 2: {  // away and back; the old place stays mapped, so that nobody takes it meanwhile
                    constexpr int kMove = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
                    // (mremap takes one mapping at a time)
                    if (::mremap(here, n * kPage, n * kPage, kMove, spare) == MAP_FAILED) break;
                    ASSERT_TRUE(zeros(here, n));
                    ASSERT_EQ(::mremap(spare, n * kPage, n * kPage, kMove, here), here);
                    break;
                }
                case 3:
                    ASSERT_TRUE(state[first] ? zeros(here, 1) : same(here, first)) << first;
                    break;
                case 4:
                    if (step % 10) break;
                    pid_t child = ::fork();
                    if (child == 0) _exit(state[first] ? !zeros(here, 1) : !same(here, first));
                    int status = 0;
                    ::waitpid(child, &status, 0);
                    ASSERT_EQ(status, 0);
            }
        }
        wait(*pager);
        for (uint64_t i = 0; i < kPages; ++i)
            ASSERT_TRUE(state[i] ? zeros(target_ + i * kPage, 1) : same(target_ + i * kPage, i))
                << seed << " " << i;
        ::munmap(spare, kSize);
        ::munmap(target_, kSize);
        ASSERT_EQ(
            ::mmap(target_, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            target_);
    }
}

TEST_F(PagerTest, ADamagedBlockIsNeverSeen) {
    write();
    Reader reader(path());
    const Extent& extent = reader.extents()[reader.extents().size() / 2];
    const Block& block = reader.blocks()[extent.block];
    {
        std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(block.offset + block.length - 1));
        file.put(static_cast<char>(content_[0] + 77));
    }
    std::string expected = fmt::format("failed: {} is damaged: checksum of the {} bytes at offset {}", path(),
                                       block.stored, block.offset);
    for (bool touched : {true, false})
        EXPECT_EXIT(
            {
                auto pager = page();
                if (touched) {
                    volatile char byte = *reinterpret_cast<char*>(extent.address);
                    dprintf(2, "seen: %d\n", byte);
                    _exit(1);
                }
                pager->prefetch(1);
                ::sleep(20);
            },
            testing::ExitedWithCode(77), expected);
}

// A child that lives on must not keep the parent's memory waiting: it has none of the descriptors.
TEST_F(PagerTest, ChildrenHoldNoDescriptorsOfIt) {
    write();
    auto pager = page();
    int go[2];
    ASSERT_EQ(::pipe(go), 0);
    pid_t child = ::fork();
    if (child == 0) {
        char byte;
        [[maybe_unused]] ssize_t n = ::read(go[0], &byte, 1);
        _exit(0);
    }
    pager->prefetch(1);
    wait(*pager);
    // Untouched holes are ordinary memory again.
    EXPECT_TRUE(same(target_, 0, kPages));
    int found = 0;
    for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", child)))
        found += std::filesystem::read_symlink(entry).string().find("userfaultfd") != std::string::npos;
    EXPECT_EQ(found, 0);
    ASSERT_EQ(::write(go[1], "x", 1), 1);
    ::waitpid(child, nullptr, 0);
    ::close(go[0]), ::close(go[1]);
}

}  // namespace
}  // namespace fermata::image
