#include "image/memory_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/fd.h"
#include "image/image.h"

namespace fermata::image {
namespace {

Fd unnamed_file(std::string directory, uint64_t size) {
    directory += "/fermata-memory-XXXXXX";
    Fd fd(mkstemp(directory.data()));
    unlink(directory.c_str());
    EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(size)), 0);
    return fd;
}

struct Space {
    char* at = static_cast<char*>(::mmap(nullptr, FileWindow::kSpace, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    ~Space() { ::munmap(at, FileWindow::kSpace); }
    char* window() const { return at + (-reinterpret_cast<uint64_t>(at) & (kHugePageSize - 1)); }
};

uint64_t bytes_of(const Fd& file) {
    struct stat st {};
    fstat(file.get(), &st);
    return static_cast<uint64_t>(st.st_blocks) * 512;
}

std::vector<char> noise(uint64_t size) {
    std::vector<char> data(size);
    std::mt19937 random(5);
    for (char& byte : data) byte = static_cast<char>(random());
    return data;
}

// Too small for huge pages: put in one by one.
TEST(MemoryFile, PagesComeWhereTheyShallAndNowhereElse) {
    constexpr uint64_t kBegin = 1 << 20, kEnd = kBegin + FileWindow::kSize + 100 * kPage,
                       kLong = kEnd + kPage;
    Fd file = unnamed_file("/dev/shm", kLong);
    MemoryFile memory;
    ASSERT_TRUE(memory.open(file.get(), true, kBegin, kEnd));
    Space space;
    FileWindow window(space.at);
    std::vector<char> data = noise(64 * kPage), back(data.size());
    // One of them over the window's edge.
    for (uint64_t at : {kBegin + 3 * kPage, kBegin + FileWindow::kSize - 7 * kPage}) {
        ASSERT_TRUE(window.put(memory, data.data(), data.size(), at));
        pread_all(file.get(), back.data(), back.size(), at, "file");
        EXPECT_EQ(back, data);
        EXPECT_FALSE(window.put(memory, data.data(), kPage, at)) << "a page is there already";
    }
    EXPECT_TRUE(window.put(memory, data.data(), kPage, kEnd - kPage));
    EXPECT_FALSE(window.put(memory, data.data(), 2 * kPage, kEnd - kPage)) << "somebody else's";
    EXPECT_FALSE(window.put(memory, data.data(), kPage, kBegin - kPage)) << "somebody else's";
    EXPECT_FALSE(window.put(memory, data.data(), 100, kBegin + kPage)) << "not a page";
    EXPECT_EQ(bytes_of(file), 2 * data.size() + kPage);
    window.leave();
    space.window()[0] = 1;  // the file is not seen there any more
    pread_all(file.get(), back.data(), kPage, kBegin, "file");
    EXPECT_EQ(back[0], 0);
    memory.close();
    EXPECT_FALSE(window.put(memory, data.data(), kPage, kBegin));
}

// Two threads' windows into two parts of one file, each with a tail that has no huge page.
TEST(MemoryFile, LargePartsAreOfHugePages) {
    constexpr uint64_t kPart = 3 * FileWindow::kSize - kHugePageSize, kTail = 5 * kPage,
                       kUsed = kPart - kHugePageSize + kTail;
    Fd file = unnamed_file("/dev/shm", 2 * kPart);
    MemoryFile parts[2];
    Space spaces[2];
    std::vector<char> data = noise(kUsed), back(kUsed);
    for (uint64_t part : {0, 1})
        ASSERT_TRUE(parts[part].open(file.get(), true, part * kPart, part * kPart + kUsed));
    FileWindow windows[2] = {FileWindow(spaces[0].at), FileWindow(spaces[1].at)};
    constexpr uint64_t kStep = 252 << 10;  // crosses every edge there is
    // (The first one's last window is still there when the second begins.)
    for (uint64_t part : {0, 1})
        for (uint64_t at = 0; at < kUsed; at += kStep) {
            uint64_t n = std::min(kStep, kUsed - at);
            if (windows[part].put(parts[part], data.data() + at, n, part * kPart + at)) continue;
            EXPECT_TRUE(at + n > kUsed - kTail) << at << ": only where the last huge page ends";
            EXPECT_EQ(pwrite(file.get(), data.data() + at, n, static_cast<off_t>(part * kPart + at)),
                      static_cast<ssize_t>(n));
        }
    for (uint64_t part : {0, 1}) {
        EXPECT_EQ(parts[part].ahead(), part * kPart + kUsed - kTail);
        windows[part].leave();
        pread_all(file.get(), back.data(), kUsed, part * kPart, "file");
        EXPECT_EQ(back, data);
    }
    EXPECT_EQ(bytes_of(file), 2 * kUsed);
    // What the kernel says of its pages: 2 MiB each.
    auto* seen = static_cast<char*>(
        ::mmap(spaces[0].window(), FileWindow::kSize, PROT_READ, MAP_SHARED | MAP_FIXED, file.get(), 0));
    volatile int sum = 0;
    for (uint64_t at = 0; at < FileWindow::kSize; at += kHugePageSize) sum = sum + seen[at];
    std::ifstream maps("/proc/self/smaps");
    std::string line, begin = fmt::format("{:x}-", reinterpret_cast<uint64_t>(seen));
    while (std::getline(maps, line) && !line.starts_with(begin)) {
    }
    while (std::getline(maps, line) && !line.starts_with("ShmemPmdMapped:")) {
    }
    EXPECT_NE(line.find(fmt::format(" {} kB", FileWindow::kSize >> 10)), std::string::npos) << line;
}

// Where the kernel makes none all is written one by one, and what was begun is known.
TEST(MemoryFile, WithoutHugePages) {
    constexpr uint64_t kSize = 2 * FileWindow::kSize, kStep = 256 << 10;
    Fd file = unnamed_file("/dev/shm", kSize);
    MemoryFile memory;
    Space space;
    FileWindow window(space.at);
    std::vector<char> data = noise(kSize), back(kSize);
    ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
    ASSERT_TRUE(memory.open(file.get(), true, 0, kSize));
    int refused = 0;
    for (uint64_t at = 0; at < kSize; at += kStep) {
        if (window.put(memory, data.data() + at, kStep, at)) continue;
        ++refused;
        EXPECT_EQ(pwrite(file.get(), data.data() + at, kStep, static_cast<off_t>(at)),
                  static_cast<ssize_t>(kStep));
    }
    prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
    EXPECT_EQ(memory.ahead(), FileWindow::kSize) << "tried once";
    EXPECT_EQ(refused, FileWindow::kSize / kHugePageSize) << "where the first page of each was made";
    window.leave();
    pread_all(file.get(), back.data(), kSize, 0, "file");
    EXPECT_EQ(back, data);
}

// A file of one's own is made long enough, but not past the limit of a process, whose signal would come.
TEST(MemoryFile, AnOwnFileIsMadeLong) {
    constexpr uint64_t kSize = 3 * FileWindow::kSize - kHugePageSize;
    Fd file = unnamed_file("/dev/shm", 0);
    MemoryFile memory;
    rlimit before{}, small{};
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = kSize - kPage;
    setrlimit(RLIMIT_FSIZE, &small);
    EXPECT_FALSE(memory.open(file.get(), false, 0, kSize));
    setrlimit(RLIMIT_FSIZE, &before);
    ASSERT_TRUE(memory.open(file.get(), false, 0, kSize + 10 * kPage));
    EXPECT_EQ(memory.ahead(), kSize);
    EXPECT_EQ(bytes_of(file), 0);
    Space space;
    FileWindow window(space.at);
    std::vector<char> data = noise(64 * kPage), back(data.size());
    ASSERT_TRUE(window.put(memory, data.data(), data.size(), kPage));
    pread_all(file.get(), back.data(), back.size(), kPage, "file");
    EXPECT_EQ(back, data);
    EXPECT_FALSE(window.put(memory, data.data(), 2 * kPage, kSize - kPage)) << "where huge pages end";
    EXPECT_FALSE(window.put(memory, data.data(), kPage, kSize));
    memory.close();
    EXPECT_FALSE(memory.open(file.get(), false, 0, FileWindow::kSize - kPage)) << "not worth the while";
}

TEST(MemoryFile, NotOnADisk) {
    MemoryFile memory;
    Fd file = unnamed_file("/var/tmp", 3 * FileWindow::kSize);
    EXPECT_FALSE(memory.open(file.get(), true, 0, 3 * FileWindow::kSize));
    EXPECT_FALSE(memory);
}

}  // namespace
}  // namespace fermata::image
