// The launcher own's decisions before anything starts: hosts and their slots, words of mpiexec, which node
// gets which ranks.
#include <gtest/gtest.h>

#include "base/error.h"
#include "launch/own/hosts.h"
#include "launch/own/placing.h"
#include "launch/own/usable.h"
#include "launch/own/words.h"

namespace fermata::launch::own {
namespace {

template <class F>
std::string refused(F f) {
    try {
        f();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::usage) << error.what();
        return error.what();
    }
    return "";
}

TEST(OwnHosts, AListHasOneSlotWhereNoNumberStands) {
    EXPECT_EQ(hosts_in_list("a,b:4,c"),
              (std::vector<Host>{{"a", 1, false}, {"b", 4, true}, {"c", 1, false}}));
    EXPECT_EQ(hosts_in_list(" a , a:2,"), (std::vector<Host>{{"a", 3, true}}));
    for (const char* list :
         {"", ",", "a:0", "a:", "a:x", "a:1:2", "-oProxyCommand=x", "a b", "a;b", "a:99999999"})
        EXPECT_NE(refused([&] { hosts_in_list(list); }), "") << list;
}

TEST(OwnHosts, AFileIsReadAsBothLaunchersReadIt) {
    EXPECT_EQ(hosts_in_file("# comment\na slots=2 max_slots=8\n\n b:3\t# more\nc\r\n", "f"),
              (std::vector<Host>{{"a", 2, true}, {"b", 3, true}, {"c", 0, false}}));
    EXPECT_EQ(refused([] { hosts_in_file("a\nb user=x\n", "hosts"); }),
              "hosts, line 2: 'user=x' is not understood: a line is NAME, NAME:4 or NAME slots=4");
    EXPECT_NE(refused([] { hosts_in_file("\n#\n", "hosts"); }), "");
}

TEST(OwnHosts, SlurmsCounts) {
    EXPECT_EQ(slurm_counts("2(x3),1"), (std::vector<uint32_t>{2, 2, 2, 1}));
    EXPECT_EQ(slurm_counts("16"), (std::vector<uint32_t>{16}));
    for (const char* text : {"2(x", "(x3)", "2(x9999999)", "x"})
        EXPECT_NE(refused([&] { slurm_counts(text); }), "") << text;
}

Wishes wishes(uint32_t ranks, std::vector<Host> hosts) {
    Wishes wishes;
    wishes.ranks = ranks;
    wishes.hosts = std::move(hosts);
    return wishes;
}

std::vector<std::string> names(const std::vector<Host>& hosts) {
    std::vector<std::string> list;
    for (const Host& host : hosts) list.push_back(host.name);
    return list;
}

TEST(OwnUsable, WhomASuspectNamesIsAsked) {
    using Names = std::vector<std::string>;
    const std::vector<Host> hosts = hosts_in_list("localhost:2,a.example.org:2,b:2");
    EXPECT_EQ(to_be_asked(hosts, {}), Names());
    EXPECT_EQ(to_be_asked(hosts, {"b"}), Names({"b"}));
    EXPECT_EQ(to_be_asked(hosts, {"a", "a.example.org"}), Names({"a.example.org"}));
    EXPECT_EQ(to_be_asked(hosts, {"localhost"}), Names()) << "this machine lives";
    // A host of the list that calls itself otherwise.
    EXPECT_EQ(to_be_asked(hosts, {"b", "node17"}), Names({"a.example.org", "b"}));
}

TEST(OwnUsable, SparesTakeThePlaceOfWhatIsLost) {
    using Names = std::vector<std::string>;
    const std::vector<Host> hosts = hosts_in_list("a,b,c,d");
    EXPECT_EQ(names(usable(hosts, {}, 0)), Names({"a", "b", "c", "d"}));
    EXPECT_EQ(names(usable(hosts, {}, 1)), Names({"a", "b", "c"}));
    EXPECT_EQ(names(usable(hosts, {"b"}, 1)), Names({"a", "c", "d"}));
    EXPECT_EQ(names(usable(hosts, {"d"}, 1)), Names({"a", "b", "c"})) << "a spare was lost";
    EXPECT_EQ(names(usable(hosts, {"a", "b"}, 1)), Names({"c", "d"})) << "more than there are spares for";
    EXPECT_NE(refused([&] { usable(hosts, {}, 4); }), "");
    try {
        usable(hosts, {"a", "b", "c", "d"}, 1);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::failed);
    }
}

TEST(OwnPlacing, FillsSlotsInTheOrderOfHosts) {
    pmi::Placement placement = place(wishes(3, {{"a", 2, true}, {"b", 2, true}}));
    EXPECT_EQ(placement.mapping(), "(vector,(0,1,2),(1,1,1))");
    EXPECT_EQ(place(wishes(0, {{"a", 2, true}, {"b", 3, true}})).ranks(), 5u);
}

TEST(OwnPlacing, MoreRanksThanSlotsHaveToBeMeant) {
    std::vector<Host> given{{"a", 1, true}, {"b", 1, true}};
    EXPECT_EQ(refused([&] { place(wishes(4, given)); }),
              "4 ranks are more than the 2 slots of 2 hosts: --oversubscribe, or more hosts");
    Wishes meant = wishes(4, given);
    meant.oversubscribe = true;
    EXPECT_EQ(place(meant).node_of(Rank(2)), 0u);
    EXPECT_EQ(place(wishes(9, {{"localhost", 2, false}})).ranks(), 9u);
}

TEST(OwnPlacing, ByNodeAndSoManyEach) {
    Wishes by_node = wishes(4, {{"a", 2, true}, {"b", 2, true}});
    by_node.by_node = true;
    EXPECT_EQ(place(by_node).node_of(Rank(1)), 1u);
    EXPECT_EQ(place(by_node).node_of(Rank(2)), 0u);
    Wishes each = wishes(0, {{"a", 1, false}, {"b", 1, false}});
    each.per_node = 3;
    EXPECT_EQ(place(each).ranks(), 6u);
    each.ranks = 7;
    EXPECT_NE(refused([&] { place(each); }), "");
}

TEST(OwnWords, ThoseOfBothLaunchers) {
    Words words = understand({"-x", "A=1", "-genv", "B", "2", "--env", "C", "3", "-wdir", "/d", "--bind-to",
                              "none", "--map-by", "node:oversubscribe", "-ppn", "2", "--hosts=a,b"});
    EXPECT_EQ(words.environment, (std::vector<std::string>{"A=1", "C=3"}));
    EXPECT_EQ(words.for_all, (std::vector<std::string>{"B=2"}));
    EXPECT_EQ(words.directory, "/d");
    EXPECT_EQ(words.hosts, "a,b");
    EXPECT_TRUE(words.bind == Bind::none && words.by_node == true && words.oversubscribe &&
                words.per_node == 2);
}

TEST(OwnWords, AnyOtherIsRefused) {
    for (const char* word : {"--rankfile", "--mca", "word", "-", "--bind-to", "-tune"})
        EXPECT_NE(refused([&] { understand({word}); }), "") << word;
    EXPECT_NE(refused([] { understand({"--bind-to", "socket"}); }), "");
    EXPECT_NE(refused([] { understand({"--map-by", "ppr:2:node"}); }), "");
}

}  // namespace
}  // namespace fermata::launch::own
