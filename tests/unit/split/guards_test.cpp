// Guard pages are found (src/split/memory/guards.h), on each kernel in the way it has.
#include "split/memory/guards.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "base/page.h"

using fermata::kPage;
using fermata::Range;
using namespace fermata::split;

namespace {

using Way = GuardScanner::Way;

struct Memory {
    explicit Memory(size_t pages)
        : size(pages * kPage),
          at(static_cast<char*>(
              ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
    ~Memory() { ::munmap(at, size); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    Range pages(size_t first, size_t count) const {
        return Range::sized(reinterpret_cast<uint64_t>(at) + first * kPage, count * kPage);
    }
    bool guard(size_t first, size_t count) const {
        return ::madvise(at + first * kPage, count * kPage, kGuardInstall) == 0;
    }

    size_t size;
    char* at;
};

TEST(Guards, AreFoundBesideWhatIsThereAndWhatIsNot) {
    const Memory memory(16);
    std::memset(memory.at, 1, 3 * kPage);
    if (!memory.guard(1, 1)) GTEST_SKIP() << "before Linux 6.13";
    ASSERT_TRUE(memory.guard(8, 2));
    const std::vector<Range> want = {memory.pages(1, 1), memory.pages(8, 2)};
    for (Way way : {GuardScanner::best_way(), Way::tried}) {
        EXPECT_EQ(GuardScanner(way).of(memory.pages(0, 16)), want);
        ::mprotect(memory.at, memory.size, PROT_NONE);
        EXPECT_EQ(GuardScanner(way).of(memory.pages(0, 16)), want) << "protected";
        ::mprotect(memory.at, memory.size, PROT_READ | PROT_WRITE);
    }
    EXPECT_EQ(memory.at[0] + memory.at[2 * kPage], 2);
}

TEST(Guards, NoneIsFoundWhereNoneIs) {
    const Memory memory(4);
    std::memset(memory.at, 1, 2 * kPage);
    for (Way way : {GuardScanner::best_way(), Way::none, Way::tried})
        EXPECT_TRUE(GuardScanner(way).of(memory.pages(0, 4)).empty());
}

}  // namespace
