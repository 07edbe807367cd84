// The daemon's end of the PMIx helper: frames there and back, fences and direct questions over two nodes
// whose helpers are played by the test, and helpers that fail.
#include "pmi/pmix_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "base/error.h"

namespace fermata::pmi {
namespace {

template <class T>
std::string bytes_of(const T& message) {
    return helper::frame(message);
}

// A fence among ranks that cannot be written: the numbers are put into the bytes of one that can.
std::string entered(uint32_t first, uint32_t count) {
    std::string bytes = bytes_of(helper::Entered{1, {RankRange(Rank(0), 1)}, ""});
    for (size_t i = 0; i < 4; ++i) {
        bytes[13 + i] = static_cast<char>(first >> 8 * i);
        bytes[17 + i] = static_cast<char>(count >> 8 * i);
    }
    return bytes;
}

// Two nodes of two ranks each. What the daemon says to its helper is read again.
class Cluster {
  public:
    Cluster() {
        World world;
        world.epoch = 4;
        world.name = "job-secret";
        world.placement.add(0, 2);
        world.placement.add(1, 2);
        world.hosts = {"a", "b"};
        world.programs = {1, 3};
        world.cores = 1;
        for (uint32_t node = 0; node < 2; ++node) {
            world.node = node;
            links.push_back(std::make_unique<PmixLink>(world, "/run/job"));
        }
        run();
    }
    void say(uint32_t node, const helper::Message& message) {
        links[node]->from_helper(bytes_of(message));
        run();
    }
    void ready() {
        for (uint32_t node = 0; node < 2; ++node) {
            helper::Ready all;
            for (uint32_t rank = 2 * node; rank < 2 * node + 2; ++rank)
                all.ranks.push_back({Rank(rank), {{"PMIX_RANK", std::to_string(rank)}}});
            say(node, all);
        }
    }
    void all_running() {
        ready();
        for (uint32_t rank = 0; rank < 4; ++rank) say(rank / 2, helper::Reached{Rank(rank), Stage::running});
    }
    void die(uint32_t rank) {
        links[rank / 2]->ended(Rank(rank), "was killed by signal 9");
        run();
        for (const Fence& failed : merge.lost(Rank(rank), "was killed by signal 9")) broadcast(failed);
        run();
    }
    void broadcast(const Fence& result) {
        for (auto& link : links) link->result(result);
    }
    void run() {
        for (bool more = true; more;) {
            more = false;
            for (uint32_t node = 0; node < links.size(); ++node)
                while (auto event = links[node]->next()) {
                    more = true;
                    std::visit([&](auto& e) { take(node, e); }, *event);
                }
        }
    }
    // The only message of this kind that the helper was sent; all others are thrown away.
    template <class T>
    T told(uint32_t node) {
        std::vector<T> found;
        for (const helper::Message& message : std::exchange(heard[node], {}))
            if (auto* one = std::get_if<T>(&message)) found.push_back(*one);
        EXPECT_EQ(found.size(), 1u);
        return found.empty() ? T{} : found[0];
    }

    std::vector<std::unique_ptr<PmixLink>> links;
    FenceMerge merge{FenceMerge::Level::root, 4, 4};
    std::map<uint32_t, std::vector<helper::Message>> heard;
    std::vector<Fault> faults;
    std::vector<Abort> aborts;

  private:
    void take(uint32_t, const ToRank&) { FAIL(); }
    void take(uint32_t node, const ToHelper& e) {
        decoders_[node].feed(e.bytes);
        while (auto message = decoders_[node].next()) heard[node].push_back(*message);
    }
    void take(uint32_t, const Fence& e) {
        if (auto result = merge.add(e)) broadcast(*result);
    }
    void take(uint32_t, const Ask& e) { links[e.rank.number() / 2]->asked(e); }
    void take(uint32_t, const Answer& e) { links[e.to]->answered(e); }
    void take(uint32_t, const Abort& e) { aborts.push_back(e); }
    void take(uint32_t, const Fault& e) { faults.push_back(e); }

    std::map<uint32_t, helper::Decoder> decoders_;
};

TEST(PmixLink, BeginsWithTheWorld) {
    Cluster c;
    auto start = c.told<helper::Start>(1);
    EXPECT_EQ(start.version, helper::kVersion);
    EXPECT_EQ(start.name, "job-secret");
    EXPECT_EQ(start.directory, "/run/job");
    EXPECT_EQ(start.node, 1u);
    EXPECT_EQ(start.placement, (std::vector<Block>{{0, 2, 2}}));
    EXPECT_EQ(start.programs, (std::vector<uint32_t>{1, 3}));
    EXPECT_EQ(start.hosts, (std::vector<std::string>{"a", "b"}));
    EXPECT_FALSE(c.links[0]->ready());
    EXPECT_THROW(c.links[0]->environment(Rank(0)), Error);
}

TEST(PmixLink, EnvironmentIsTheHelpersAndOpenMpis) {
    Cluster c;
    c.ready();
    ASSERT_TRUE(c.links[1]->ready());
    std::map<std::string, std::string> names;
    for (auto& [name, value] : c.links[1]->environment(Rank(3))) names[name] = value;
    EXPECT_EQ(names["PMIX_RANK"], "3");
    EXPECT_EQ(names["OMPI_COMM_WORLD_RANK"], "3");
    EXPECT_EQ(names["OMPI_COMM_WORLD_SIZE"], "4");
    EXPECT_EQ(names["OMPI_COMM_WORLD_LOCAL_RANK"], "1");
    EXPECT_EQ(names["OMPI_COMM_WORLD_LOCAL_SIZE"], "2");
    EXPECT_EQ(names["OMPI_MCA_mpi_oversubscribe"], "1");
    EXPECT_THROW(c.links[1]->environment(Rank(0)), Error);
}

TEST(PmixLink, AFenceOfAll) {
    Cluster c;
    c.all_running();
    for (uint32_t round = 0; round < 3; ++round) {
        c.heard.clear();
        c.say(0, helper::Entered{10 + round, {}, "A"});
        EXPECT_TRUE(c.heard[0].empty());
        c.say(1, helper::Entered{20 + round, {}, "B"});
        for (uint32_t node = 0; node < 2; ++node) {
            auto fenced = c.told<helper::Fenced>(node);
            EXPECT_EQ(fenced.number, 10 * (node + 1) + round);
            EXPECT_EQ(fenced.data, "AB");
            EXPECT_EQ(fenced.fault, "");
        }
    }
    EXPECT_TRUE(c.faults.empty());
}

TEST(PmixLink, AFenceOfSomeBesideAnotherOne) {
    Cluster c;
    c.all_running();
    c.heard.clear();
    const std::vector<RankRange> some = {RankRange(Rank(1), 2)}, one = {RankRange(Rank(0), 1)};
    c.say(0, helper::Entered{1, some, "x"});
    c.say(0, helper::Entered{2, one, "y"});
    auto first = c.told<helper::Fenced>(0);
    EXPECT_EQ(first.number, 2u);
    EXPECT_EQ(first.data, "y");
    c.say(1, helper::Entered{7, some, "z"});
    EXPECT_EQ(c.told<helper::Fenced>(0).data, "xz");
    EXPECT_EQ(c.told<helper::Fenced>(1).number, 7u);
}

TEST(PmixLink, DirectQuestions) {
    Cluster c;
    c.all_running();
    c.heard.clear();
    c.say(0, helper::Request{5, Rank(3)});
    auto wanted = c.told<helper::Wanted>(1);
    EXPECT_EQ(wanted.rank, Rank(3));
    c.say(1, helper::Publication{wanted.from, wanted.number, "blob", ""});
    auto given = c.told<helper::Given>(0);
    EXPECT_EQ(given.number, 5u);
    EXPECT_EQ(given.data, "blob");
    c.die(3);
    c.heard.clear();
    c.say(0, helper::Request{6, Rank(3)});
    EXPECT_NE(c.told<helper::Given>(0).fault, "");
    c.links[1]->asked({3, 0, 1, Rank(2)});  // another epoch
    c.links[1]->asked({4, 0, 2, Rank(0)});  // a rank of the other node
    c.run();
    EXPECT_EQ(c.heard[0].size(), 1u) << "answers of another epoch are not the helper's";
}

TEST(PmixLink, ARankThatNeverCameFailsTheStart) {
    Cluster c;
    c.ready();
    for (uint32_t rank : {0u, 2u, 3u}) c.say(rank / 2, helper::Reached{Rank(rank), Stage::running});
    c.say(1, helper::Entered{9, {}, ""});
    c.heard.clear();
    c.die(1);
    EXPECT_EQ(c.told<helper::Fenced>(1).fault, "rank 1 was killed by signal 9");
    ASSERT_EQ(c.faults.size(), 1u) << "of the rank that waits where nobody can tell it";
    EXPECT_EQ(c.faults[0].rank, Rank(0));
    EXPECT_EQ(c.links[0]->stage(Rank(0)), Stage::failed);
}

TEST(PmixLink, ARankThatComesAfterTheDeathIsToldAsWell) {
    Cluster c;
    c.ready();
    c.die(1);
    EXPECT_TRUE(c.faults.empty()) << "programs without MPI just end";
    c.say(0, helper::Reached{Rank(0), Stage::running});
    ASSERT_EQ(c.faults.size(), 1u);
    EXPECT_EQ(c.faults[0].line, "rank 0 waits for all ranks, in vain: rank 1 was killed by signal 9");
}

TEST(PmixLink, ADeathInTheProgramIsNoFaultOfTheOthers) {
    Cluster c;
    c.all_running();
    c.say(0, helper::Entered{1, {}, ""});
    c.say(1, helper::Entered{1, {}, ""});
    c.heard.clear();
    c.die(1);
    EXPECT_EQ(c.links[0]->stage(Rank(1)), Stage::failed);
    EXPECT_TRUE(c.faults.empty());
    EXPECT_EQ(c.links[0]->stage(Rank(0)), Stage::running);
    // The next fence fails, on both nodes; libpmix hands over one without the rank that it lost.
    c.say(1, helper::Entered{2, {}, ""});
    EXPECT_NE(c.told<helper::Fenced>(1).fault, "");
    c.say(0, helper::Entered{2, {}, ""});
    EXPECT_NE(c.told<helper::Fenced>(0).fault, "");
}

// libpmix may lose a rank before its process can be waited for.
TEST(PmixLink, AFenceWithoutARankThatIsOnItsWayOut) {
    Cluster c;
    c.all_running();
    c.links[1]->is_ending = [](Rank rank) { return rank == Rank(3); };
    c.say(0, helper::Entered{1, {{Rank(0), 3}}, ""});
    c.say(1, helper::Entered{1, {{Rank(0), 3}}, ""});
    EXPECT_EQ(c.told<helper::Fenced>(0).fault, "") << "it is not among them";
    c.say(0, helper::Entered{2, {}, ""});
    c.heard.clear();
    c.say(1, helper::Entered{2, {}, ""});
    EXPECT_EQ(c.told<helper::Fenced>(0).fault, "rank 3 has ended");
    EXPECT_EQ(c.told<helper::Fenced>(1).fault, "rank 3 has ended");
    c.die(3);
}

// The part of this node had been handed up when the result failed elsewhere, or not yet.
TEST(PmixLink, AFaultBeforeTheHelperSpeaks) {
    Cluster c;
    c.all_running();
    c.say(1, helper::Entered{1, {}, ""});
    c.heard.clear();
    c.die(2);
    EXPECT_NE(c.told<helper::Fenced>(1).fault, "");
    c.say(0, helper::Entered{1, {}, ""});
    EXPECT_EQ(c.told<helper::Fenced>(0).fault, "rank 2 was killed by signal 9");
}

TEST(PmixLink, StagesAndAborts) {
    Cluster c;
    c.all_running();
    EXPECT_EQ(c.links[0]->stage(Rank(0)), Stage::running);
    c.say(0, helper::Reached{Rank(0), Stage::finalized});
    EXPECT_EQ(c.links[0]->stage(Rank(0)), Stage::finalized);
    c.say(0, helper::Aborted{Rank(1), 77, "N/A"});
    ASSERT_EQ(c.aborts.size(), 1u);
    EXPECT_EQ(c.aborts[0].rank, Rank(1));
    EXPECT_EQ(c.aborts[0].code, 77);
}

TEST(PmixLink, AHelperThatEnds) {
    Cluster c;
    c.all_running();
    c.say(1, helper::Entered{1, {}, ""});
    c.heard.clear();
    c.links[0]->helper_ended("was killed by signal 11");
    c.run();
    ASSERT_EQ(c.faults.size(), 1u);
    EXPECT_FALSE(c.faults[0].rank);
    EXPECT_EQ(c.faults[0].line, "node a: the PMIx helper was killed by signal 11");
    EXPECT_EQ(c.told<helper::Fenced>(1).fault, "the PMIx helper was killed by signal 11");
    EXPECT_FALSE(c.links[0]->ready());
    EXPECT_TRUE(c.heard[0].empty()) << "nothing is said to who is gone";
}

TEST(PmixLink, AHelperThatIsNoLongerNeeded) {
    Cluster c;
    c.all_running();
    for (uint32_t rank : {0u, 1u}) c.say(0, helper::Reached{Rank(rank), Stage::finalized});
    c.links[0]->helper_ended("was killed by signal 11");
    c.run();
    EXPECT_TRUE(c.faults.empty());
}

TEST(PmixLink, AHelperThatSaysItCannot) {
    Cluster c;
    c.say(0, helper::Failed{"cannot serve: libpmix: init: ERROR"});
    ASSERT_EQ(c.faults.size(), 1u);
    EXPECT_EQ(c.faults[0].line, "node a: the PMIx helper cannot serve: libpmix: init: ERROR");
}

TEST(PmixLink, WhatNoHelperSays) {
    const std::vector<std::string> bad = {
        std::string("\0\0\0\0", 4),                          // an empty frame
        std::string("\xff\xff\xff\xff", 4),                  // a frame of 4 GiB
        std::string("\x01\0\0\0\x63", 5),                    // no such message
        std::string("\x05\0\0\0\x10\xff\xff\xff\xff", 9),    // a list that runs over
        bytes_of(helper::Start{}),                           // a daemon's
        bytes_of(helper::Reached{Rank(2), Stage::running}),  // a rank of the other node
        bytes_of(helper::Aborted{Rank(9), 1, ""}),
        bytes_of(helper::Request{1, Rank(0)}),  // a rank of its own
        bytes_of(helper::Request{1, Rank(4)}),
        bytes_of(helper::Ready{}),
        bytes_of(helper::Ready{{{Rank(2), {}}}}),
        bytes_of(helper::Entered{1, {RankRange(Rank(2), 2)}, ""}),  // none of its ranks
        bytes_of(helper::Entered{1, {RankRange(Rank(0), 5)}, ""}),
        bytes_of(helper::Entered{1, {RankRange(Rank(1), 1), RankRange(Rank(0), 1)}, ""}),
        entered(0, 0),
        entered(0xffffffff, 0xffffffff),
        bytes_of(helper::Entered{1, {}, ""}) + bytes_of(helper::Entered{2, {}, ""}),
    };
    for (const std::string& bytes : bad) {
        Cluster c;
        c.links[0]->from_helper(bytes);
        c.run();
        ASSERT_EQ(c.faults.size(), 1u) << testing::PrintToString(bytes);
        EXPECT_NE(c.faults[0].line.find("the PMIx helper cannot be understood: "), std::string::npos)
            << c.faults[0].line;
        c.links[0]->from_helper(bytes);
        c.run();
        EXPECT_EQ(c.faults.size(), 1u);
    }
}

TEST(PmixLink, FramesInAnyPieces) {
    Cluster c;
    helper::Ready all;
    for (uint32_t rank = 0; rank < 2; ++rank) all.ranks.push_back({Rank(rank), {{"A", "b"}, {"C", ""}}});
    for (char byte : bytes_of(all) + bytes_of(helper::Reached{Rank(1), Stage::running}))
        c.links[0]->from_helper(std::string(1, byte));
    EXPECT_TRUE(c.links[0]->ready());
    EXPECT_EQ(c.links[0]->stage(Rank(1)), Stage::running);
}

}  // namespace
}  // namespace fermata::pmi
