// Parity as the root orders it: when, of what, and when it counts.
#include "keeping/levels/parity_rounds.h"

#include <gtest/gtest.h>

namespace fermata::keeping {
namespace {

class ParityRoundsTest : public testing::Test {
  protected:
    void SetUp() override {
        settings_.levels = level::Levels::parse("memory 1s, rs:2+1 10s");
        places_ = {"a", "a", "b", "c"};
        addresses_ = {{"a", "of a"}, {"b", "of b"}, {"c", "of c"}};
    }
    ParityRounds::What what(std::vector<Generation> generations) {
        return {std::move(generations), 4 << 20, &places_, &addresses_};
    }

    Settings settings_;
    std::vector<wire::Message> sent_;
    ParityRounds rounds_{settings_, [this](const wire::Message& message) { sent_.push_back(message); }};
    std::vector<std::string> places_;
    std::map<std::string, std::string> addresses_;
};

TEST_F(ParityRoundsTest, NodesThatCannotBearItAreRefused) {
    EXPECT_NE(rounds_.group_up({"a"}).find("wants at least 2 failure domains"), std::string::npos);
    EXPECT_FALSE(rounds_.on());
    settings_.levels.domains = level::Domains::parse("a s1\nb s1\n", "f");
    EXPECT_NE(rounds_.group_up({"a", "b"}), "");
    EXPECT_NE(rounds_.group_up({"a", "c"}).find("does not name c"), std::string::npos);
}

TEST_F(ParityRoundsTest, AllOfAGroupAreToldAndCount) {
    EXPECT_FALSE(rounds_.due(Generation(7), 1000));  // nobody is in a group yet
    EXPECT_EQ(rounds_.group_up({"a", "b", "c"}), "");
    EXPECT_TRUE(rounds_.due(Generation(7), 1000));
    rounds_.start(what({Generation(6), Generation(7)}), 1000);
    EXPECT_FALSE(rounds_.due(Generation(8), 99000));  // one is under way
    EXPECT_EQ(rounds_.under_way(), (std::vector<Generation>{Generation(6), Generation(7)}));
    const auto& order = std::get<wire::Encode>(sent_.at(0));
    ASSERT_EQ(order.groups.size(), 2u);
    EXPECT_EQ(order.groups[1].generation, Generation(7));
    EXPECT_EQ(order.groups[1].losses, 1u);
    EXPECT_EQ(
        order.groups[1].peers,
        (std::vector<wire::Peer>{{"a", "of a", {{0, 2}}}, {"b", "of b", {{2, 1}}}, {"c", "of c", {{3, 1}}}}));
    EXPECT_GE(order.bytes_per_second, uint64_t{64} << 20);

    EXPECT_TRUE(rounds_.heard(wire::Encoded{1, "a", 10, ""}));
    EXPECT_TRUE(rounds_.heard(wire::Encoded{1, "a", 10, ""}));  // said again
    EXPECT_TRUE(rounds_.heard(wire::Encoded{1, "b", 10, ""}));
    EXPECT_FALSE(rounds_.over({"a", "b", "c"}));
    EXPECT_TRUE(rounds_.heard(wire::Encoded{1, "c", 10, ""}));
    const auto over = rounds_.over({"a", "b", "c"});
    ASSERT_TRUE(over);
    EXPECT_EQ(over->why_not, "");
    EXPECT_EQ(over->bytes, 30u);
    EXPECT_FALSE(rounds_.due(Generation(7), 99000));  // it has been done
    EXPECT_FALSE(rounds_.due(Generation(8), 2000));
    EXPECT_TRUE(rounds_.due(Generation(8), 11000));
}

TEST_F(ParityRoundsTest, AnErrorOrANodeThatIsGoneEndsIt) {
    EXPECT_EQ(rounds_.group_up({"a", "b", "c"}), "");
    rounds_.start(what({Generation(7)}), 1000);
    rounds_.heard(wire::Encoded{1, "a", 0, "no room"});
    EXPECT_EQ(rounds_.over({"a", "b", "c"})->why_not, "a: no room");
    rounds_.start(what({Generation(8)}), 20000);
    EXPECT_FALSE(rounds_.over({"a", "b", "c"}));
    EXPECT_EQ(rounds_.over({"a", "b"})->why_not, "the node daemon of c is gone");
}

}  // namespace
}  // namespace fermata::keeping
