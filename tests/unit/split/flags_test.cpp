// Flags of mappings are sampled while the program runs, and are those of what the mappings have become.
#include "split/pages/flags.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <string>
#include <vector>

#include "base/page.h"
#include "base/range.h"

namespace fermata::split {
namespace {

constexpr uint64_t kRoom = 64 << 20;

std::string flags_at(uint64_t address) {
    std::vector<Mapping> maps = read_maps();
    add_memory_flags(maps);
    for (const Mapping& m : maps)
        if (m.range.contains(address)) return m.flags;
    return "nothing is there";
}

class Flags : public testing::Test {
  protected:
    // Room with nothing in it, of which this has the end.
    uint64_t map_at_the_end(uint64_t size, int flags) {
        const auto room = reinterpret_cast<uint64_t>(
            ::mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        ::munmap(reinterpret_cast<void*>(room), kRoom);
        return map(room + kRoom - size, size, flags);
    }
    uint64_t map(uint64_t at, uint64_t size, int flags) {
        void* made = ::mmap(reinterpret_cast<void*>(at), size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | flags, -1, 0);
        EXPECT_NE(made, MAP_FAILED);
        all_.push_back(Range::sized(at, size));
        return at;
    }
    void TearDown() override {
        forget_memory_flags();
        for (Range one : all_)
            ::munmap(reinterpret_cast<void*>(one.begin() - kRoom / 2), kRoom / 2 + one.size());
    }

  private:
    std::vector<Range> all_;
};

TEST_F(Flags, AStackThatHasGrownSinceGrowsStill) {
    const uint64_t stack = map_at_the_end(1 << 20, MAP_GROWSDOWN | MAP_NORESERVE);
    sample_memory_flags();
    for (int page = 1; page < 10; ++page) *reinterpret_cast<volatile char*>(stack - page * kPage) = 1;
    const std::string flags = flags_at(stack - kPage);
    EXPECT_NE(flags.find(" gd"), std::string::npos) << flags;
    EXPECT_NE(flags.find(" nr"), std::string::npos) << flags;
}

TEST_F(Flags, MemoryThatWasJoinedWithWhatCameBelowIt) {
    const uint64_t memory = map_at_the_end(1 << 20, 0);
    ASSERT_EQ(::madvise(reinterpret_cast<void*>(memory), 1 << 20, MADV_DONTFORK), 0);
    sample_memory_flags();
    const uint64_t below = map(memory - (1 << 20), 1 << 20, 0);
    ASSERT_EQ(::madvise(reinterpret_cast<void*>(below), 1 << 20, MADV_DONTFORK), 0);
    EXPECT_NE(flags_at(below).find(" dc"), std::string::npos) << flags_at(below);
}

TEST_F(Flags, MemoryThatIsNewHasNone) {
    const uint64_t memory = map_at_the_end(1 << 20, MAP_NORESERVE);
    sample_memory_flags();
    const uint64_t below = map(memory - (1 << 20), 1 << 20, 0);
    EXPECT_EQ(flags_at(below), "");
    EXPECT_NE(flags_at(memory).find(" nr"), std::string::npos);
}

}  // namespace
}  // namespace fermata::split
