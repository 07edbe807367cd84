// Parity that rotates: every size of group, every chunk has one place, and all losses that are borne are.
#include "erasure/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "erasure/scheme.h"

namespace fermata::erasure {
namespace {

TEST(Layout, GroupsThatBearNothingAreNone) {
    EXPECT_FALSE(Layout::of(0, 0));
    EXPECT_FALSE(Layout::of(3, 0));
    EXPECT_FALSE(Layout::of(2, 2));
    EXPECT_FALSE(Layout::of(256, 2));
    EXPECT_TRUE(Layout::of(3, 2));
    EXPECT_TRUE(Layout::of(255, 254));
}

TEST(Layout, EachChunkHasOnePlaceForEverySize) {
    for (uint32_t members = 2; members <= 24; ++members)
        for (uint32_t losses = 1; losses < members; ++losses) {
            const Layout layout = *Layout::of(members, losses);
            std::vector<std::set<uint32_t>> data(members), parity(members);
            for (uint32_t s = 0; s < layout.stripes(); ++s) {
                std::set<uint32_t> positions;
                for (uint32_t m = 0; m < members; ++m) {
                    const Position at = layout.position(Stripe{s}, Member{m});
                    EXPECT_EQ(layout.member_at(Stripe{s}, at), Member{m});
                    positions.insert(number(at));
                    const uint32_t chunk = layout.chunk(Stripe{s}, Member{m});
                    (layout.is_data(at) ? data : parity)[m].insert(chunk);
                    EXPECT_EQ(layout.is_data(at) ? layout.stripe_of_data(Member{m}, chunk)
                                                 : layout.stripe_of_parity(Member{m}, chunk),
                              Stripe{s});
                }
                EXPECT_EQ(positions.size(), members);
                // Where parity lies is what the page says.
                for (uint32_t r = 0; r < losses; ++r)
                    EXPECT_EQ(layout.position(Stripe{s}, Member{(s + r) % members}),
                              Position{layout.data() + r});
            }
            for (uint32_t m = 0; m < members; ++m) {
                EXPECT_EQ(data[m].size(), members - losses);
                EXPECT_EQ(*data[m].rbegin(), members - losses - 1);
                EXPECT_EQ(parity[m].size(), losses);
                EXPECT_EQ(*parity[m].rbegin(), losses - 1);
            }
        }
}

TEST(Layout, AnyMMembersMayBeLostAndNoMore) {
    for (uint32_t members = 2; members <= 9; ++members)
        for (uint32_t losses = 1; losses < members; ++losses) {
            const Layout layout = *Layout::of(members, losses);
            for (uint32_t set = 0; set < 1u << members; ++set) {
                std::vector<bool> lost(members);
                uint32_t count = 0;
                for (uint32_t m = 0; m < members; ++m) count += lost[m] = set >> m & 1;
                EXPECT_EQ(layout.bears(lost, lost), count <= losses);
            }
            // Data of one and parity of others count in each stripe by itself.
            std::vector<bool> data(members), none(members);
            EXPECT_TRUE(layout.bears(data, std::vector<bool>(members, true)));
            data[0] = true;
            EXPECT_FALSE(layout.bears(data, std::vector<bool>(members, true)));
            EXPECT_TRUE(layout.bears(data, none));
        }
}

TEST(Scheme, WordsAreReadAndSaidAgain) {
    for (const char* words : {"4+2", "1+1", "126+2", "1+127"}) {
        auto scheme = Scheme::parse(words);
        ASSERT_TRUE(scheme) << words;
        EXPECT_EQ(scheme->to_text(), words);
    }
    EXPECT_EQ(Scheme::parse("4+2")->data(), 4u);
    EXPECT_EQ(Scheme::parse("4+2")->losses(), 2u);
    for (const char* words : {"", "4", "4+", "+2", "0+2", "4+0", "-4+2", "04+2", "4+2 ", " 4+2", "4+2x",
                              "4 + 2", "127+2", "4294967295+2", "99999999999+1", "4+-2"})
        EXPECT_FALSE(Scheme::parse(words)) << words;
}

}  // namespace
}  // namespace fermata::erasure
