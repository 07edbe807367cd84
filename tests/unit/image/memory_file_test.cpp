#include "image/memory_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
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
    char* at = static_cast<char*>(::mmap(nullptr, FileWindow::kSize, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    ~Space() { ::munmap(at, FileWindow::kSize); }
};

TEST(MemoryFile, PagesComeWhereTheyShallAndNowhereElse) {
    constexpr uint64_t kSize = 2 * FileWindow::kSize;
    Fd file = unnamed_file("/dev/shm", kSize);
    PagePlacer placer;
    ASSERT_TRUE(placer.open(file.get()));
    Space space;
    FileWindow window(space.at);
    std::vector<char> data(64 * kPage), back(data.size());
    std::mt19937 random(5);
    for (char& byte : data) byte = static_cast<char>(random());
    // One of them over the window's edge.
    for (uint64_t at : {3 * kPage, FileWindow::kSize - 7 * kPage, kSize - data.size()}) {
        ASSERT_TRUE(window.put(placer, data.data(), data.size(), at));
        pread_all(file.get(), back.data(), back.size(), at, "file");
        EXPECT_EQ(back, data);
        EXPECT_FALSE(window.put(placer, data.data(), kPage, at)) << "a page is there already";
    }
    EXPECT_FALSE(window.put(placer, data.data(), kPage, kSize)) << "behind the end";
    EXPECT_FALSE(window.put(placer, data.data(), 100, kPage)) << "not a page";
    struct stat st {};
    fstat(file.get(), &st);
    EXPECT_EQ(static_cast<uint64_t>(st.st_blocks) * 512, 3 * data.size());
    window.leave();
    space.at[0] = 1;  // the file is not seen there any more
    pread_all(file.get(), back.data(), kPage, 0, "file");
    EXPECT_EQ(back[0], 0);
    placer.close();
    EXPECT_FALSE(window.put(placer, data.data(), kPage, 0));
}

TEST(MemoryFile, NotOnADisk) {
    PagePlacer placer;
    Fd file = unnamed_file("/var/tmp", kPage);
    EXPECT_FALSE(placer.open(file.get()));
    EXPECT_FALSE(placer);
}

}  // namespace
}  // namespace fermata::image
