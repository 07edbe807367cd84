// Parity as the root orders it: when, of what, and when it counts.
#include "keeping/levels/parity_rounds.h"

#include "fake_nodes.h"
#include "keeping/levels/words.h"

namespace fermata::keeping {
namespace {

class ParityRoundsTest : public KeepingTest {
  protected:
    ParityRoundsTest() {
        settings_.levels = parse_levels("memory 1s, rs:2+1 10s");
        nodes_.there = {"a", "b", "c"};
    }
    void commit(Generation generation, const std::vector<uint32_t>& needs = {}) {
        store::Manifest one = manifest(generation, needs);
        one.images.push_back({Rank(3), "rank", 1 << 30, {}, 0});
        one.nodes.push_back("c");
        note_in(means_.account, one);
    }

    Means means_{settings_, store_, nodes_};
    ParityRounds rounds_{means_};
};

TEST_F(ParityRoundsTest, NodesThatCannotBearItAreRefused) {
    EXPECT_NE(rounds_.place_on({"a"}).find("wants at least 2 failure domains"), std::string::npos);
    commit(Generation(7));
    rounds_.turn(at(1000));
    EXPECT_TRUE(nodes_.told.empty());
    settings_.levels.domains = level::Domains::parse("a s1\nb s1\n", "f");
    EXPECT_NE(rounds_.place_on({"a", "b"}), "");
    EXPECT_NE(rounds_.place_on({"a", "c"}).find("does not name c"), std::string::npos);
}

TEST_F(ParityRoundsTest, AllOfAGroupAreToldAndCount) {
    commit(Generation(6));
    commit(Generation(7), {6});
    rounds_.turn(at(1000));
    EXPECT_TRUE(nodes_.told.empty());  // nobody is in a group yet
    EXPECT_EQ(rounds_.place_on({"a", "b", "c"}), "");
    rounds_.turn(at(1000));
    EXPECT_EQ(rounds_.in_use(), (std::vector<Generation>{Generation(6), Generation(7)}));
    const auto order = std::get<wire::Encode>(nodes_.told.at(0));
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
    EXPECT_FALSE(rounds_.turn(at(2000)));
    EXPECT_TRUE(rounds_.heard(wire::Encoded{1, "c", 10, ""}));
    EXPECT_TRUE(rounds_.turn(at(2000)));
    EXPECT_TRUE(means_.account.book.has(Generation(6), level::kParity));
    EXPECT_TRUE(means_.account.book.has(Generation(7), level::kParity));
    rounds_.turn(at(99'000));  // it has been done
    EXPECT_EQ(nodes_.told.size(), 1u);
    commit(Generation(8));
    rounds_.turn(at(10'999));
    EXPECT_EQ(nodes_.told.size(), 1u);
    rounds_.turn(at(11'000));
    EXPECT_EQ(nodes_.told.size(), 2u);
}

TEST_F(ParityRoundsTest, AnErrorOrANodeThatIsGoneEndsIt) {
    EXPECT_EQ(rounds_.place_on({"a", "b", "c"}), "");
    commit(Generation(7));
    rounds_.turn(at(1000));
    rounds_.heard(wire::Encoded{1, "a", 0, "no room"});
    EXPECT_EQ(rounds_.over({"a", "b", "c"})->why_not, "a: no room");
    commit(Generation(8));
    rounds_.turn(at(20'000));
    EXPECT_FALSE(rounds_.over({"a", "b", "c"}));
    EXPECT_EQ(rounds_.over({"a", "b"})->why_not, "the node daemon of c is gone");
}

TEST_F(ParityRoundsTest, DamagedParityIsMadeAnewWhileItIsMendedAndBeforeItsTime) {
    EXPECT_EQ(rounds_.place_on({"a", "b", "c"}), "");
    commit(Generation(7));
    Moment moment = at(1000);
    moment.mending = true;
    rounds_.turn(moment);
    EXPECT_TRUE(nodes_.told.empty());
    means_.account.damage.to_encode = {Generation(7)};
    moment.writing = true;  // buddies are being copied
    rounds_.turn(moment);
    EXPECT_TRUE(nodes_.told.empty());
    moment.writing = false;
    rounds_.turn(moment);
    EXPECT_EQ(std::get<wire::Encode>(nodes_.told.at(0)).groups.at(0).generation, Generation(7));
    EXPECT_TRUE(means_.account.damage.to_encode.empty());
}

}  // namespace
}  // namespace fermata::keeping
