// Copies from node to node as the root orders them: when, of what, and when they count.
#include <gtest/gtest.h>

#include "keeping/levels/buddy_copies.h"
#include "keeping/levels/local_copies.h"
#include "keeping/orders/fetching.h"

namespace fermata::keeping {
namespace {

wire::Errand errand(const std::string& to, const std::string& from) {
    return {to, from, "10.0.0.5:1", {Generation(7)}, {{0, 1}}, {}};
}

TEST(Fetching, IsDoneWhenEverybodyHasAnsweredOrIsGone) {
    Fetching round({3, true, 0, {errand("a", "b"), errand("a", "c"), errand("b", "c")}});
    EXPECT_FALSE(round.heard({2, "a", 9, {}}));  // of another round
    EXPECT_TRUE(round.heard({3, "a", 9, {{"c", "no room"}}}));
    EXPECT_TRUE(round.heard({3, "a", 9, {{"c", "no room"}}}));  // said again
    EXPECT_FALSE(round.done());
    EXPECT_EQ(round.bytes(), 9u);
    round.only({"a", "b"});
    EXPECT_FALSE(round.done());
    round.only({"a"});
    ASSERT_TRUE(round.done());
    ASSERT_EQ(round.failed().size(), 2u);
    EXPECT_EQ(round.failed()[0].errand, errand("a", "c"));
    EXPECT_EQ(round.failed()[0].why, "a: no room");
    EXPECT_EQ(round.failed()[1].errand, errand("b", "c"));
    EXPECT_EQ(round.failed()[1].why, "the node daemon of b is gone");
}

class BuddyCopiesTest : public testing::Test {
  protected:
    void SetUp() override {
        settings_.levels = level::Levels::parse("memory 1s, buddy 10s");
        for (uint32_t rank : {0u, 1u, 2u}) manifest_.images.push_back({Rank(rank), "rank", 1 << 30, {}, 0});
        places_ = {"a", "a", "b"};
        addresses_ = {{"a", "of a"}, {"b", "of b"}};
    }
    BuddyCopies::What what(std::vector<Generation> generations) {
        return {std::move(generations), &manifest_, &places_, &addresses_};
    }

    Settings settings_;
    std::vector<wire::Message> sent_;
    uint32_t rounds_ = 4;
    BuddyCopies buddies_{settings_, [this](const wire::Message& message) { sent_.push_back(message); },
                         rounds_};
    store::Manifest manifest_;
    std::vector<std::string> places_;
    std::map<std::string, std::string> addresses_;
};

TEST_F(BuddyCopiesTest, EachNodeIsToldWhatToTakeFromWhom) {
    EXPECT_FALSE(buddies_.due(Generation(7), 1000));  // nobody is paired yet
    EXPECT_EQ(buddies_.pair_up({"a", "b"}), "");
    EXPECT_EQ(buddies_.buddy_of("a"), "b");
    EXPECT_FALSE(buddies_.due(Generation(), 1000));
    EXPECT_TRUE(buddies_.due(Generation(7), 1000));  // the first one at once
    buddies_.start(what({Generation(5), Generation(7)}), 1000);
    ASSERT_EQ(sent_.size(), 1u);
    const auto& order = std::get<wire::Fetch>(sent_[0]);
    EXPECT_EQ(order.number, 5u);
    EXPECT_GT(order.bytes_per_second, 64u << 20);
    ASSERT_EQ(order.errands.size(), 2u);
    EXPECT_EQ(order.errands[0].to, "b");
    EXPECT_EQ(order.errands[0].from, "a");
    EXPECT_EQ(order.errands[0].addresses, "of a");
    EXPECT_EQ(order.errands[0].ranks, (std::vector<wire::Run>{{0, 2}}));
    EXPECT_EQ(order.errands[0].generations, (std::vector<Generation>{Generation(5), Generation(7)}));
    EXPECT_EQ(order.errands[1].to, "a");
    EXPECT_EQ(order.errands[1].ranks, (std::vector<wire::Run>{{2, 1}}));
    EXPECT_EQ(buddies_.rounds().under_way().size(), 2u);
    EXPECT_FALSE(buddies_.due(Generation(8), 50'000));  // one after the other
    buddies_.rounds().say_again();
    EXPECT_EQ(sent_.size(), 2u);

    EXPECT_FALSE(buddies_.rounds().over({"a", "b"}));
    EXPECT_TRUE(buddies_.rounds().heard(wire::Fetched{5, "a", 10, {}}));
    EXPECT_FALSE(buddies_.rounds().over({"a", "b"}));  // counts only when all nodes said so
    EXPECT_TRUE(buddies_.rounds().heard(wire::Fetched{5, "b", 20, {}}));
    auto over = buddies_.rounds().over({"a", "b"});
    ASSERT_TRUE(over);
    EXPECT_EQ(over->why_not, "");
    EXPECT_EQ(over->bytes, 30u);
    EXPECT_FALSE(buddies_.rounds().over({"a", "b"}));
    EXPECT_FALSE(buddies_.due(Generation(8), 10'999));
    EXPECT_TRUE(buddies_.due(Generation(8), 11'000));
    EXPECT_FALSE(buddies_.due(Generation(7), 11'000));  // it had its turn
}

TEST_F(BuddyCopiesTest, ANodeThatIsGoneOrHasNoRoomIsSaid) {
    buddies_.pair_up({"a", "b"});
    buddies_.start(what({Generation(7)}), 1000);
    buddies_.rounds().heard(wire::Fetched{5, "b", 0, {{"a", "1.0 GiB of memory for 2.0 GiB"}}});
    auto over = buddies_.rounds().over({"b"});
    ASSERT_TRUE(over);
    EXPECT_EQ(over->why_not, "b: 1.0 GiB of memory for 2.0 GiB");
}

TEST_F(BuddyCopiesTest, ToLocalDirectoriesEachNodeTakesItsOwn) {
    settings_.levels = level::Levels::parse("memory 1s, local 10s");
    LocalCopies local{settings_, [this](const wire::Message& message) { sent_.push_back(message); }, rounds_};
    EXPECT_TRUE(local.due(Generation(7), 1000));
    local.start(what({Generation(7)}), 1000);
    EXPECT_FALSE(local.due(Generation(8), 2000));
    ASSERT_EQ(sent_.size(), 1u);
    const auto& order = std::get<wire::Fetch>(sent_[0]);
    EXPECT_EQ(order.into, Medium::local);
    ASSERT_EQ(order.errands.size(), 2u);
    for (const wire::Errand& errand : order.errands) {
        EXPECT_EQ(errand.to, errand.from);
        EXPECT_EQ(errand.medium, Medium::memory);
        EXPECT_EQ(errand.addresses, "of " + errand.from);
    }
    settings_.levels = level::Levels::parse("local 10s");
    EXPECT_FALSE(local.on());
}

TEST_F(BuddyCopiesTest, WhereThereCanBeNoneThatIsSaid) {
    EXPECT_NE(buddies_.pair_up({"a"}), "");
    settings_.levels.domains = level::Domains::parse("a s1\n", "file");
    EXPECT_EQ(buddies_.pair_up({"a", "b"}), "the file of --domains does not name b");
    settings_.restored = Generation(7);  // a node that came in the place of another
    EXPECT_EQ(buddies_.pair_up({"a", "b"}), "");
    settings_.levels = level::Levels::parse("memory 1s");
    EXPECT_EQ(buddies_.pair_up({"a"}), "");
}

}  // namespace
}  // namespace fermata::keeping
