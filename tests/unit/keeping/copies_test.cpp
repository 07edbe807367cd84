// Copies from node to node as the root orders them: when, of what, and when they count.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "fake_nodes.h"
#include "keeping/levels/buddy_copies.h"
#include "keeping/levels/file_copies.h"
#include "keeping/levels/local_copies.h"
#include "keeping/levels/words.h"
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

class BuddyCopiesTest : public KeepingTest {
  protected:
    void SetUp() override {
        settings_.levels = parse_levels("memory 1s, buddy 10s");
        while (means_.numbers.next() < 4) continue;
    }
    void commit(Generation generation, const std::vector<uint32_t>& needs = {}) {
        note_in(means_.account, manifest(generation, needs));
    }

    Means means_{settings_, store_, nodes_};
    BuddyCopies buddies_{means_};
};

TEST_F(BuddyCopiesTest, EachNodeIsToldWhatToTakeFromWhom) {
    EXPECT_FALSE(buddies_.turn(at(1000)));
    commit(Generation(5));
    commit(Generation(7), {5});
    buddies_.turn(at(1000));
    EXPECT_TRUE(nodes_.told.empty());  // nobody is paired yet
    EXPECT_EQ(buddies_.place_on({"a", "b"}), "");
    EXPECT_EQ(means_.account.buddy_of("a"), "b");
    buddies_.turn(at(1000));  // the first one at once
    ASSERT_EQ(nodes_.told.size(), 1u);
    const auto order = std::get<wire::Fetch>(nodes_.told[0]);
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
    EXPECT_EQ(buddies_.in_use(), (std::vector<Generation>{Generation(5), Generation(7)}));
    commit(Generation(8));
    buddies_.turn(at(50'000));  // one after the other
    EXPECT_EQ(nodes_.told.size(), 1u);
    buddies_.say_again();
    EXPECT_EQ(nodes_.told.size(), 2u);
}

TEST_F(BuddyCopiesTest, TheyCountWhenAllNodesHaveSaidSo) {
    commit(Generation(7));
    buddies_.place_on({"a", "b"});
    buddies_.turn(at(1000));
    EXPECT_FALSE(buddies_.heard(wire::Fetched{4, "a", 10, {}}));  // of another round
    EXPECT_TRUE(buddies_.heard(wire::Fetched{5, "a", 10, {}}));
    EXPECT_TRUE(buddies_.heard(wire::Fetched{5, "a", 10, {}}));  // said again
    EXPECT_FALSE(buddies_.turn(at(2000)));
    EXPECT_FALSE(means_.account.book.has(Generation(7), level::kBuddies));
    EXPECT_TRUE(buddies_.heard(wire::Fetched{5, "b", 20, {}}));
    EXPECT_TRUE(buddies_.turn(at(2000)));
    EXPECT_TRUE(means_.account.book.has(Generation(7), level::kBuddies));
    EXPECT_TRUE(buddies_.in_use().empty());
    commit(Generation(8));
    buddies_.turn(at(10'999));
    EXPECT_EQ(nodes_.told.size(), 1u);
    buddies_.turn(at(11'000));
    EXPECT_EQ(nodes_.all<wire::Fetch>().back().errands[0].generations.back(), Generation(8));
}

TEST_F(BuddyCopiesTest, ANodeThatIsGoneOrHasNoRoomIsSaidAndTheOthersAreWaitedFor) {
    commit(Generation(7));
    buddies_.place_on({"a", "b"});
    buddies_.turn(at(1000));
    buddies_.heard(wire::Fetched{5, "b", 0, {{"a", "1.0 GiB of memory for 2.0 GiB"}}});
    EXPECT_FALSE(buddies_.over({"a", "b"}));
    auto over = buddies_.over({"b"});
    ASSERT_TRUE(over);
    EXPECT_EQ(over->why_not, "b: 1.0 GiB of memory for 2.0 GiB");
    buddies_.turn(at(90'000));  // it had its turn
    EXPECT_EQ(nodes_.told.size(), 1u);
}

// A level that cannot even give its order: the directory is full, or gone.
struct NoOrder : BuddyCopies {
    using BuddyCopies::BuddyCopies;
    Order order(const std::vector<Generation>&, uint32_t) override { throw Error("no room there"); }
    using Copies::trouble;
};

TEST_F(BuddyCopiesTest, AnOrderThatCannotBeGivenIsSaidAndTheJobGoesOn) {
    NoOrder unable(means_);
    commit(Generation(7));
    EXPECT_EQ(unable.place_on({"a", "b"}), "");
    EXPECT_FALSE(unable.turn(at(1000)));
    EXPECT_TRUE(nodes_.told.empty());
    EXPECT_FALSE(unable.is_under_way());
    EXPECT_EQ(unable.trouble(), "no room there");
    EXPECT_FALSE(means_.account.book.has(Generation(7), level::kBuddies));
    EXPECT_FALSE(unable.turn(at(2000)));  // the same generation is not tried again and again
}

TEST_F(BuddyCopiesTest, NoneBeginsWhileSomethingIsMended) {
    commit(Generation(7));
    buddies_.place_on({"a", "b"});
    Moment mending = at(1000);
    mending.mending = true;
    buddies_.turn(mending);
    EXPECT_TRUE(nodes_.told.empty());
}

TEST_F(BuddyCopiesTest, WhereThereCanBeNoneThatIsSaid) {
    EXPECT_NE(buddies_.place_on({"a"}), "");
    settings_.levels.domains = level::Domains::parse("a s1\n", "file");
    EXPECT_EQ(buddies_.place_on({"a", "b"}), "the file of --domains does not name b");
    settings_.restored = Generation(7);  // a node that came in the place of another
    EXPECT_EQ(buddies_.place_on({"a", "b"}), "");
    settings_.levels = parse_levels("memory 1s");
    EXPECT_EQ(buddies_.place_on({"a"}), "");
}

class LocalCopiesTest : public KeepingTest {
  protected:
    LocalCopiesTest() {
        settings_.levels = parse_levels("memory 1s, local 10s");
        note_in(means_.account, manifest(Generation(7)));
    }
    Means means_{settings_, store_, nodes_};
    LocalCopies local_{means_};
};

TEST_F(LocalCopiesTest, EachNodeTakesItsOwn) {
    local_.turn(at(1000));
    ASSERT_EQ(nodes_.told.size(), 1u);
    const auto order = std::get<wire::Fetch>(nodes_.told[0]);
    EXPECT_EQ(order.into, Medium::local);
    ASSERT_EQ(order.errands.size(), 2u);
    for (const wire::Errand& errand : order.errands) {
        EXPECT_EQ(errand.to, errand.from);
        EXPECT_EQ(errand.medium, Medium::memory);
        EXPECT_EQ(errand.addresses, "of " + errand.from);
    }
    EXPECT_EQ(local_.coming_to(Medium::local), (std::vector<Generation>{Generation(7)}));
    EXPECT_TRUE(local_.coming_to(Medium::memory).empty());
    EXPECT_FALSE(LocalCopies::is_wanted(parse_levels("local 10s")));
}

TEST_F(LocalCopiesTest, DoNotCountUnlessTheManifestIsSyncedFirst) {
    local_.turn(at(1000));
    for (const char* node : {"a", "b"}) local_.heard(wire::Fetched{1, node, 10, {}});
    EXPECT_TRUE(local_.turn(at(2000)));  // no directory of it is there: its manifest cannot be synced
    EXPECT_FALSE(means_.account.book.has(Generation(7), store::LevelName::local));
    nlohmann::json all;
    local_.add_status(all);
    EXPECT_NE(all["local_trouble"], "");

    note_in(means_.account, manifest(Generation(8)));
    std::filesystem::create_directory(directory_.path() + "/gen-000008");
    for (const char* name : {".fermata", "manifest.json"})
        std::ofstream(directory_.path() + "/gen-000008/" + name) << "{}";
    local_.turn(at(12'000));
    for (const char* node : {"a", "b"}) local_.heard(wire::Fetched{2, node, 10, {}});
    EXPECT_TRUE(local_.turn(at(13'000)));
    EXPECT_TRUE(means_.account.book.has(Generation(8), store::LevelName::local));
}

class FileCopiesTest : public KeepingTest {
  protected:
    FileCopiesTest() {
        settings_.levels = parse_levels("memory 1s, files 10s");
        note_in(means_.account, manifest(Generation(7)));
    }
    Means means_{settings_, store_, nodes_};
    FileCopies files_{means_};
};

TEST_F(FileCopiesTest, TheNextIsDueOnePeriodAfterTheLastWhateverBecameOfThat) {
    files_.turn(at(1000));
    EXPECT_TRUE(nodes_.told.empty());  // the job has just begun
    files_.turn(at(11'000));
    ASSERT_EQ(nodes_.told.size(), 1u);
    const auto order = std::get<wire::Flush>(nodes_.told[0]);
    EXPECT_EQ(order.shares, (std::vector<wire::Share>{{"a", {{0, 2}}}, {"b", {{2, 1}}}}));
    EXPECT_EQ(order.directory, directory_.path());
    EXPECT_GT(order.bytes_per_second, 0u);
    files_.hurry();
    EXPECT_EQ(nodes_.all<wire::Flush>().back().bytes_per_second, 0u);
    EXPECT_EQ(nodes_.all<wire::Flush>().back().number, order.number);
    EXPECT_TRUE(files_.heard(wire::Flushed{order.number, "a", 0, "no space"}));
    EXPECT_FALSE(files_.turn(at(12'000)));  // the other still writes
    EXPECT_TRUE(files_.heard(wire::Flushed{order.number, "b", 10, ""}));
    EXPECT_TRUE(files_.turn(at(12'000)));
    EXPECT_TRUE(files_.has_failed());
    EXPECT_EQ(means_.account.damage.doubtful, Generation(7));
    files_.turn(at(20'999));
    EXPECT_FALSE(files_.is_under_way());
    means_.account.damage.is_mended = true;  // then at once
    files_.turn(at(20'999));
    EXPECT_TRUE(files_.is_under_way());
    EXPECT_FALSE(means_.account.damage.is_mended);
}

TEST_F(FileCopiesTest, ANodeThatIsGoneLeavesNoDoubt) {
    files_.copy_now(Generation(7), 1000);
    EXPECT_EQ(nodes_.all<wire::Flush>().at(0).bytes_per_second, 0u);
    files_.heard(wire::Flushed{1, "a", 10, ""});
    nodes_.there = {"a"};
    EXPECT_TRUE(files_.turn(at(2000)));
    EXPECT_TRUE(files_.has_failed());
    EXPECT_FALSE(means_.account.damage.doubtful);
}

TEST_F(FileCopiesTest, OneOrderAtATimeGoesToADirectoryOutside) {
    files_.turn(at(1000));
    Moment moment = at(11'000);
    moment.to_files = true;  // of another level
    files_.turn(moment);
    EXPECT_FALSE(files_.is_under_way());
    moment.to_files = false;
    files_.turn(moment);
    EXPECT_TRUE(files_.is_under_way());
}

}  // namespace
}  // namespace fermata::keeping
