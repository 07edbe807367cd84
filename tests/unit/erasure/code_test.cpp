// Any K chunks of a stripe give all others.
#include "erasure/code.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "chunks.h"

namespace fermata::erasure {
namespace {

// Rebuilds what is not in `present` and compares.
void expect_rebuilt(const Layout& layout, const std::vector<Chunk>& stripe,
                    const std::vector<Position>& present) {
    std::vector<Position> wanted;
    std::vector<Chunk> from;
    for (uint32_t i = 0; i < layout.members(); ++i)
        if (std::count(present.begin(), present.end(), Position{i}) == 0) wanted.push_back(Position{i});
    for (Position position : present) from.push_back(stripe[number(position)]);
    std::vector<Chunk> to(wanted.size(), Chunk(stripe[0].size(), 0xee));
    Code(layout).rebuilding(present, wanted).apply(pointers(from), places(to), stripe[0].size());
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(to[i], stripe[number(wanted[i])]);
}

TEST(Code, AllErasuresOfSmallGroups) {
    std::mt19937 random(1);
    for (uint32_t members = 2; members <= 8; ++members)
        for (uint32_t losses = 1; losses < members; ++losses) {
            const Layout layout = *Layout::of(members, losses);
            const auto stripe = encoded(layout, random_data(random, layout.data(), 133));
            for (uint32_t set = 0; set < 1u << members; ++set) {
                std::vector<Position> present;
                for (uint32_t i = 0; i < members; ++i)
                    if (set >> i & 1) present.push_back(Position{i});
                if (present.size() == layout.data()) expect_rebuilt(layout, stripe, present);
            }
        }
}

TEST(Code, DrawnErasuresOfAnySize) {
    std::mt19937 random(2);
    for (int round = 0; round < 300; ++round) {
        const uint32_t members = 2 + random() % (round % 10 ? 20 : 254);
        const Layout layout = *Layout::of(members, 1 + random() % std::min(members - 1, 6u));
        // Also lengths that are no multiple of what the processor does at once.
        const auto stripe = encoded(layout, random_data(random, layout.data(), 1 + random() % 5000));
        std::vector<Position> all;
        for (uint32_t i = 0; i < members; ++i) all.push_back(Position{i});
        std::shuffle(all.begin(), all.end(), random);
        all.resize(layout.data());
        expect_rebuilt(layout, stripe, all);
    }
}

TEST(Code, ARowByItselfIsTheRowOfAll) {
    std::mt19937 random(3);
    const Layout layout = *Layout::of(6, 2);
    const auto stripe = encoded(layout, random_data(random, 4, 4096));
    std::vector<Chunk> data(stripe.begin(), stripe.begin() + 4);
    for (uint32_t row = 0; row < 2; ++row) {
        std::vector<Chunk> one(1, Chunk(4096));
        Code(layout).parity(row, 1).apply(pointers(data), places(one), 4096);
        EXPECT_EQ(one[0], stripe[4 + row]);
    }
}

TEST(Code, OtherNumbersOfChunksAreNotTaken) {
    const Code code(*Layout::of(6, 2));
    const std::vector<Position> three = {Position{0}, Position{1}, Position{2}};
    const std::vector<Position> twice = {Position{0}, Position{1}, Position{2}, Position{2}};
    const std::vector<Position> wanted = {Position{5}};
    EXPECT_ANY_THROW(code.rebuilding(three, wanted));
    EXPECT_ANY_THROW(code.rebuilding(twice, wanted));
    EXPECT_ANY_THROW(code.parity(1, 2));
    EXPECT_ANY_THROW(code.parity(0, 0));
}

}  // namespace
}  // namespace fermata::erasure
