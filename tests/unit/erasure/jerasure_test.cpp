// The same parity as jerasure, which has a field arithmetic of its own (gf-complete), and either decodes what
// the other has encoded.
#include <gtest/gtest.h>

#include <algorithm>

#include "chunks.h"

extern "C" {
#include <jerasure.h>
#include <jerasure/galois.h>
}

namespace fermata::erasure {
namespace {

constexpr int kWord = 8;  // GF(2^8)

// The parity rows of ours, as jerasure takes them.
std::vector<int> matrix_of(const Layout& layout) {
    const Code code(layout);
    const auto& ours = code.matrix();
    return {ours.begin() + layout.data() * layout.data(), ours.end()};
}

std::vector<char*> chars(std::vector<Chunk>& chunks, size_t from, size_t to) {
    std::vector<char*> all;
    for (size_t i = from; i < to; ++i) all.push_back(reinterpret_cast<char*>(chunks[i].data()));
    return all;
}

TEST(Jerasure, TheSameParityAndEachDecodesTheOther) {
    std::mt19937 random(4);
    for (int round = 0; round < 400; ++round) {
        const uint32_t members = 2 + random() % 18;
        const Layout layout = *Layout::of(members, 1 + random() % std::min(members - 1, 5u));
        const int k = static_cast<int>(layout.data()), m = static_cast<int>(layout.losses());
        const int bytes = 64 * (1 + static_cast<int>(random() % 64));
        std::vector<int> matrix = matrix_of(layout);
        const auto ours = encoded(layout, random_data(random, layout.data(), static_cast<size_t>(bytes)));

        auto theirs = ours;
        for (uint32_t i = layout.data(); i < members; ++i) std::fill(theirs[i].begin(), theirs[i].end(), 0);
        auto data = chars(theirs, 0, layout.data()), parity = chars(theirs, layout.data(), members);
        jerasure_matrix_encode(k, m, kWord, matrix.data(), data.data(), parity.data(), bytes);
        ASSERT_EQ(theirs, ours) << members << " members, " << m << " losses";

        std::vector<int> lost(members);
        for (uint32_t i = 0; i < members; ++i) lost[i] = static_cast<int>(i);
        std::shuffle(lost.begin(), lost.end(), random);
        lost.resize(1 + random() % layout.losses());
        auto damaged = ours;
        for (int i : lost)
            std::fill(damaged[static_cast<size_t>(i)].begin(), damaged[static_cast<size_t>(i)].end(), 0xaa);

        auto by_them = damaged;
        std::vector<int> erasures = lost;
        erasures.push_back(-1);
        data = chars(by_them, 0, layout.data());
        parity = chars(by_them, layout.data(), members);
        ASSERT_EQ(jerasure_matrix_decode(k, m, kWord, matrix.data(), 0, erasures.data(), data.data(),
                                         parity.data(), bytes),
                  0);
        EXPECT_EQ(by_them, ours);

        std::vector<Position> present, wanted;
        std::vector<Chunk> from;
        for (uint32_t i = 0; i < members; ++i)
            if (std::count(lost.begin(), lost.end(), static_cast<int>(i)))
                wanted.push_back(Position{i});
            else if (present.size() < layout.data()) {
                present.push_back(Position{i});
                from.push_back(theirs[i]);
            }
        std::vector<Chunk> to(wanted.size(), Chunk(static_cast<size_t>(bytes)));
        Code(layout)
            .rebuilding(present, wanted)
            .apply(pointers(from), places(to), static_cast<size_t>(bytes));
        for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(to[i], ours[number(wanted[i])]);
    }
}

// Not only the same arithmetic on our matrix: theirs, made by their own hand, has the same numbers. (jerasure
// has 1 / (row ^ (M + column)), ISA-L 1 / ((K + row) ^ column).)
TEST(Jerasure, TheMatrixIsCauchys) {
    const Layout layout = *Layout::of(9, 3);
    const std::vector<int> ours = matrix_of(layout);
    for (uint32_t row = 0; row < 3; ++row)
        for (uint32_t column = 0; column < 6; ++column)
            EXPECT_EQ(ours[row * 6 + column],
                      galois_single_divide(1, static_cast<int>((6 + row) ^ column), kWord));
}

}  // namespace
}  // namespace fermata::erasure
