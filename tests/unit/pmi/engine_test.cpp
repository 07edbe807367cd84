// The PMI-1 engine: what a rank says and is told, barriers over several nodes in one process, and bad ranks.
#include "pmi/engine.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "base/error.h"

namespace fermata::pmi {
namespace {

// Nodes of one world, joined by a root's merge. What each rank was told is kept.
class Cluster {
  public:
    Cluster(std::vector<uint32_t> ranks_per_node, uint32_t epoch = 1) {
        World world;
        world.epoch = epoch;
        world.name = "kvs";
        for (uint32_t node = 0; node < ranks_per_node.size(); ++node)
            world.placement.add(node, ranks_per_node[node]);
        size = world.size();
        merge = std::make_unique<FenceMerge>(FenceMerge::Level::root, epoch, size);
        for (uint32_t node = 0; node < ranks_per_node.size(); ++node) {
            world.node = node;
            engines.push_back(std::make_unique<Engine>(world));
        }
        placement = world.placement;
    }

    Engine& of(uint32_t rank) { return *engines[placement.node_of(Rank(rank))]; }
    void say(uint32_t rank, const std::string& bytes) {
        of(rank).from_rank(Rank(rank), bytes);
        run();
    }
    // What this rank has been told since it was last asked.
    std::string told(uint32_t rank) { return std::exchange(answers[rank], {}); }
    std::string ask(uint32_t rank, const std::string& line) {
        say(rank, line + "\n");
        return told(rank);
    }
    void init_all() {
        for (uint32_t rank = 0; rank < size; ++rank) ask(rank, "cmd=init pmi_version=1 pmi_subversion=1");
    }
    void die(uint32_t rank, const std::string& how = "was killed by signal 9") {
        of(rank).ended(Rank(rank), how);
        run();
        for (const Fence& failed : merge->lost(Rank(rank), how)) broadcast(failed);
        run();
    }
    void run() {
        for (bool more = true; more;) {
            more = false;
            for (auto& engine : engines)
                while (auto event = engine->next()) {
                    more = true;
                    std::visit([&](auto& e) { take(e); }, *event);
                }
        }
    }
    void broadcast(const Fence& result) {
        for (auto& engine : engines) engine->result(result);
    }

    uint32_t size = 0;
    Placement placement;
    std::vector<std::unique_ptr<Engine>> engines;
    std::unique_ptr<FenceMerge> merge;
    std::map<uint32_t, std::string> answers;
    std::vector<Fault> faults;
    std::vector<Abort> aborts;
    std::vector<Answer> modex;
    int parts = 0;

  private:
    void take(const ToRank& e) { answers[e.rank.number()] += e.bytes; }
    void take(const Fence& e) {
        ++parts;
        if (auto result = merge->add(e)) broadcast(*result);
    }
    void take(const Abort& e) { aborts.push_back(e); }
    void take(const Fault& e) { faults.push_back(e); }
    void take(const Answer& e) { modex.push_back(e); }
    void take(const ToHelper&) { FAIL(); }
    void take(const Ask&) { FAIL(); }
};

const std::string kInit = "cmd=init pmi_version=1 pmi_subversion=1";
const std::string kOut = "cmd=barrier_out rc=0 msg=success\n";
const std::string kError = "cmd=error rc=-1 msg=failed\n";

TEST(Engine, ARankFromInitToFinalize) {
    Cluster c({1});
    EXPECT_EQ(c.of(0).stage(Rank(0)), Stage::silent);
    EXPECT_EQ(c.ask(0, kInit), "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    EXPECT_EQ(c.of(0).stage(Rank(0)), Stage::running);
    EXPECT_EQ(c.ask(0, "cmd=get_maxes"), "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0\n");
    EXPECT_EQ(c.ask(0, "cmd=get_appnum"), "cmd=appnum appnum=0 rc=0\n");
    EXPECT_EQ(c.ask(0, "cmd=get_my_kvsname"), "cmd=my_kvsname kvsname=kvs rc=0\n");
    EXPECT_EQ(c.ask(0, "cmd=get_universe_size"), "cmd=universe_size size=1 rc=0\n");
    EXPECT_EQ(c.ask(0, "cmd=get kvsname=kvs key=PMI_process_mapping"),
              "cmd=get_result rc=0 msg=success value=(vector,(0,1,1))\n");
    EXPECT_EQ(c.ask(0, "cmd=barrier_in"), kOut);
    EXPECT_EQ(c.ask(0, "cmd=finalize"), "cmd=finalize_ack rc=0\n");
    EXPECT_EQ(c.of(0).stage(Rank(0)), Stage::finalized);
    c.die(0, "ended with 0");
    EXPECT_EQ(c.of(0).stage(Rank(0)), Stage::finalized);
    EXPECT_TRUE(c.faults.empty());
}

TEST(Engine, BytesMayComeInAnyPieces) {
    Cluster c({1});
    const std::string talk = kInit + "\ncmd=put kvsname=kvs key=a value=1\ncmd=get kvsname=kvs key=a\n";
    for (char byte : talk) c.say(0, std::string(1, byte));
    EXPECT_EQ(c.told(0),
              "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\ncmd=put_result rc=0 msg=success\n"
              "cmd=get_result rc=0 msg=success value=1\n");
}

TEST(Engine, WhatOneNodePutsTheOthersGet) {
    Cluster c({2, 3, 1});
    c.init_all();
    for (int round = 0; round < 3; ++round) {
        for (uint32_t rank = 0; rank < 6; ++rank)
            EXPECT_EQ(c.ask(rank, fmt::format("cmd=put kvsname=kvs key=r{}-{} value=host{}$port=1", round,
                                              rank, rank)),
                      "cmd=put_result rc=0 msg=success\n");
        for (uint32_t rank = 0; rank < 6; ++rank) {
            for (uint32_t before = 0; before < rank; ++before) EXPECT_EQ(c.told(before), "");
            c.say(rank, "cmd=barrier_in\n");
        }
        for (uint32_t rank = 0; rank < 6; ++rank) EXPECT_EQ(c.told(rank), kOut);
        for (uint32_t rank = 0; rank < 6; ++rank)
            for (uint32_t other = 0; other < 6; ++other)
                EXPECT_EQ(c.ask(rank, fmt::format("cmd=get kvsname=kvs key=r{}-{}", round, other)),
                          fmt::format("cmd=get_result rc=0 msg=success value=host{}$port=1\n", other));
    }
    EXPECT_EQ(c.parts, 9) << "one part a node and barrier";
}

TEST(Engine, EnvironmentAndPrograms) {
    World world;
    world.name = "kvs";
    world.placement.add(0, 2);
    world.placement.add(1, 2);
    world.node = 1;
    world.programs = {3, 1};
    world.universe = 64;
    Engine engine(world);
    std::map<std::string, std::string> names;
    for (auto& [name, value] : engine.environment(Rank(3))) names[name] = value;
    EXPECT_EQ(names["PMI_RANK"], "3");
    EXPECT_EQ(names["PMI_SIZE"], "4");
    EXPECT_EQ(names["MPI_LOCALNRANKS"], "2");
    EXPECT_EQ(names["MPI_LOCALRANKID"], "1");
    auto ask = [&](uint32_t rank, const std::string& line) {
        engine.from_rank(Rank(rank), line + "\n");
        return std::get<ToRank>(*engine.next()).bytes;
    };
    ask(2, kInit);
    ask(3, kInit);
    EXPECT_EQ(ask(2, "cmd=get_appnum"), "cmd=appnum appnum=0 rc=0\n");
    EXPECT_EQ(ask(3, "cmd=get_appnum"), "cmd=appnum appnum=1 rc=0\n");
    EXPECT_EQ(ask(3, "cmd=get_universe_size"), "cmd=universe_size size=64 rc=0\n");
    EXPECT_THROW(engine.from_rank(Rank(0), "cmd=get_appnum\n"), Error);
}

TEST(Engine, AMappingThatIsTooLongIsLeftOut) {
    World world;
    world.name = "kvs";
    for (uint32_t rank = 0; rank < 1000; ++rank) world.placement.add(rank % 2, 1);
    Engine engine(world);
    engine.from_rank(Rank(0), kInit + "\ncmd=get kvsname=kvs key=PMI_process_mapping\n");
    engine.next();
    EXPECT_EQ(std::get<ToRank>(*engine.next()).bytes,
              "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
}

TEST(Engine, AnswersThatSayNo) {
    Cluster c({1});
    c.init_all();
    EXPECT_EQ(c.ask(0, "cmd=get kvsname=kvs key=nothing"),
              "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
    EXPECT_EQ(c.ask(0, "cmd=get kvsname=other key=PMI_process_mapping"),
              "cmd=get_result rc=-1 msg=unknown_kvsname value=unknown\n");
    EXPECT_EQ(c.ask(0, "cmd=put kvsname=other key=a value=b"), "cmd=put_result rc=-1 msg=unknown_kvsname\n");
    c.ask(0, "cmd=put kvsname=kvs key=a value=b");
    EXPECT_EQ(c.ask(0, "cmd=put kvsname=kvs key=a value=c"), "cmd=put_result rc=-1 msg=duplicate_key\n");
    EXPECT_EQ(c.ask(0, "cmd=publish_name service=a port=b"),
              "cmd=publish_result rc=-1 info=failed msg=not_with_this_launcher\n");
    EXPECT_EQ(c.ask(0, "cmd=lookup_name service=a"),
              "cmd=lookup_result rc=-1 info=failed msg=not_with_this_launcher\n");
    EXPECT_EQ(c.ask(0, "mcmd=spawn\nnprocs=2\nexecname=/bin/a b\nendcmd"),
              "cmd=spawn_result rc=-1 msg=not_with_this_launcher\n");
    EXPECT_EQ(c.ask(0, "cmd=get_appnum"), "cmd=appnum appnum=0 rc=0\n");
    EXPECT_TRUE(c.faults.empty());
}

// Each ends in one fault that says why, and in an answer that no call of PMI takes for its own.
TEST(Engine, WhatIsForbidden) {
    const std::pair<std::string, std::string> bad[] = {
        {"cmd=get_maxes", "'get_maxes' before init"},
        {"cmd=init pmi_version=2 pmi_subversion=0", "version 2"},
        {"cmd=init", "without pmi_version"},
        {"cmd=init pmi_version=1x", "no number"},
        {kInit + "\n" + kInit, "unknown command 'init'"},
        {kInit + "\ncmd=dance", "unknown command 'dance'"},
        {kInit + "\n", "no command"},
        {kInit + "\nput kvsname=kvs", "no word=value"},
        {kInit + "\ncmd=put cmd=get", "twice"},
        {kInit + "\ncmd=put kvsname=kvs key=a", "without value"},
        {kInit + "\ncmd=put kvsname=kvs key= value=a", "a key of 0"},
        {kInit + "\ncmd=put kvsname=kvs key=a value=" + std::string(1024, 'x'), "value of 1024"},
        {kInit + "\ncmd=put kvsname=kvs key=" + std::string(64, 'x') + " value=a", "key of 64"},
        {kInit + "\ncmd=get_app\x01num", "control characters"},
        {kInit + "\ncmd=finalize\ncmd=put kvsname=kvs key=a value=b", "'put' after finalize"},
        {kInit + "\n" + std::string(20000, 'x'), "more than 16384 bytes"},
        {std::string("\0\xff\n", 3), "control characters"},
        {kInit + "\ncmd=abort exitcode=99999999999999999999", "no number"},
    };
    for (const auto& [talk, why] : bad) {
        Cluster c({2});
        const std::string said = c.ask(0, talk);
        EXPECT_EQ(said.substr(said.size() - kError.size()), kError) << talk;
        ASSERT_EQ(c.faults.size(), 1u) << talk;
        EXPECT_EQ(c.faults[0].rank, Rank(0));
        EXPECT_NE(c.faults[0].line.find(why), std::string::npos) << c.faults[0].line;
        EXPECT_EQ(c.faults[0].line.find('\n'), std::string::npos);
        EXPECT_EQ(c.of(0).stage(Rank(0)), Stage::failed);
        // Whoever waits for it is told, now or later.
        c.ask(1, kInit);
        EXPECT_EQ(c.ask(1, "cmd=barrier_in"), kError) << talk;
        ASSERT_EQ(c.faults.size(), 2u);
    }
}

TEST(Engine, AFailedRankThatGoesOnIsToldForSomeTime) {
    Cluster c({1});
    c.ask(0, "garbage");
    EXPECT_EQ(c.ask(0, "cmd=get_maxes"), kError);
    std::string flood;
    for (int i = 0; i < 100000; ++i) flood += "x\n";
    c.say(0, flood);
    EXPECT_LT(c.told(0).size(), 100 * kError.size());
    EXPECT_EQ(c.faults.size(), 1u);
}

TEST(Engine, SpeakingInsideABarrier) {
    Cluster c({1, 1});
    c.init_all();
    c.say(0, "cmd=barrier_in\n");
    EXPECT_EQ(c.ask(0, "cmd=get_maxes"), kError);
    EXPECT_EQ(c.ask(1, "cmd=barrier_in"), kError) << "the other node is told, too";
    EXPECT_EQ(c.faults.size(), 2u);
}

TEST(Engine, AbortIsReportedWithItsCode) {
    Cluster c({1, 2});
    c.init_all();
    c.say(1, "cmd=barrier_in\n");
    EXPECT_EQ(c.ask(1, "cmd=abort exitcode=77"), "");
    ASSERT_EQ(c.aborts.size(), 1u);
    EXPECT_EQ(c.aborts[0].rank, Rank(1));
    EXPECT_EQ(c.aborts[0].code, 77);
    EXPECT_EQ(c.ask(2, "cmd=abort"), "");
    EXPECT_EQ(c.aborts[1].code, 1);
    EXPECT_EQ(c.ask(0, "cmd=abort exitcode=-1"), "");
    EXPECT_EQ(c.aborts[2].code, -1);
    // MPICH 4.2.1:
    EXPECT_EQ(
        c.ask(0, "cmd=abort exitcode=7 message=application called MPI_Abort(MPI_COMM_WORLD, 7) - process 1"),
        "");
    EXPECT_EQ(c.aborts[3].code, 7);
}

// Whoever dies, and whenever: nobody waits for it.
void one_dies(uint32_t dead, bool began, bool entered, uint32_t late) {
    SCOPED_TRACE(testing::Message() << dead << " dies, began " << began << ", entered " << entered
                                    << ", late " << late);
    Cluster c({2, 2});
    auto others = [&](auto&& what) {
        for (uint32_t rank = 0; rank < 4; ++rank)
            if (rank != dead) what(rank);
    };
    others([&](uint32_t rank) { c.ask(rank, kInit); });
    if (began) c.ask(dead, kInit);
    if (entered) c.say(dead, "cmd=barrier_in\n");
    others([&](uint32_t rank) {
        if (rank != late) c.say(rank, "cmd=barrier_in\n");
    });
    const bool passed = entered && late == 4;
    c.die(dead);
    if (late < 4) c.say(late, "cmd=barrier_in\n");
    others([&](uint32_t rank) { EXPECT_EQ(c.told(rank), passed ? kOut : kError); });
    EXPECT_EQ(c.faults.size(), passed ? 0u : 3u);
    // And none later.
    others([&](uint32_t rank) { EXPECT_EQ(c.ask(rank, "cmd=barrier_in"), kError); });
}

TEST(Engine, ADeadRankEndsTheBarrierOfAll) {
    for (uint32_t dead = 0; dead < 4; ++dead)
        for (uint32_t late = 0; late < 5; ++late) {  // who enters after the death; 4: nobody
            if (dead == late) continue;
            one_dies(dead, false, false, late);
            one_dies(dead, true, false, late);
            one_dies(dead, true, true, late);
        }
}

TEST(Engine, AFinalizedRankDoesNotEnter) {
    Cluster c({2});
    c.init_all();
    c.say(0, "cmd=barrier_in\n");
    c.ask(1, "cmd=finalize");
    EXPECT_EQ(c.told(0), kError);
}

TEST(Engine, ProgramsWithoutMpiJustEnd) {
    Cluster c({2, 2});
    for (uint32_t rank = 0; rank < 4; ++rank) c.die(rank, "ended with 0");
    EXPECT_EQ(c.parts, 0);
    EXPECT_TRUE(c.faults.empty());
    EXPECT_EQ(c.of(0).stage(Rank(0)), Stage::silent);
}

// Its node had handed up its part when a rank died: the others pass this barrier, and not the next.
TEST(Engine, ADeathBetweenPartAndResult) {
    World world;
    world.name = "kvs";
    world.placement.add(0, 2);
    world.placement.add(1, 1);
    Engine engine(world);
    engine.from_rank(Rank(0), kInit + "\ncmd=barrier_in\n");
    engine.from_rank(Rank(1), kInit + "\ncmd=barrier_in\n");
    std::vector<Fence> parts;
    auto drain = [&] {
        while (auto event = engine.next())
            if (auto* fence = std::get_if<Fence>(&*event)) parts.push_back(*fence);
    };
    drain();
    engine.ended(Rank(1), "was killed by signal 9");
    drain();
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_EQ(parts[1].fault, "rank 1 was killed by signal 9");
    EXPECT_EQ(parts[1].name, parts[0].name);
    EXPECT_EQ(engine.stage(Rank(0)), Stage::failed);
    engine.result({parts[0].name, 3, 3, {}, {}});  // had been made before
    drain();
    ASSERT_EQ(parts.size(), 3u);
    EXPECT_EQ(parts[2].name.number, 1u);
    EXPECT_EQ(parts[2].fault, "rank 1 was killed by signal 9");
}

TEST(Engine, ResultsThatAreNotOursOrCannotBe) {
    Cluster c({1, 1}, 5);
    c.init_all();
    c.say(0, "cmd=barrier_in\n");
    c.of(0).result({{4, {}, 0}, 2, 2, {}, {}});
    c.of(0).result({{5, {}, 1}, 2, 2, {}, {}});
    c.of(0).result({{5, {{Rank(0), 1}}, 0}, 1, 1, {}, {}});
    c.run();
    EXPECT_EQ(c.told(0), "");
    c.of(0).result({{5, {}, 0}, 2, 2, "no record", {}});
    c.run();
    EXPECT_EQ(c.told(0), kError);
    EXPECT_NE(c.faults.at(0).line.find("cannot be read"), std::string::npos);
    // A result of which this node is no part: it would make up for ranks that have not entered.
    c.of(1).result({{5, {}, 0}, 2, 2, {}, {}});
    EXPECT_EQ(c.ask(1, "cmd=barrier_in"), kError);
}

TEST(Engine, TheOldEpochIsTold) {
    Cluster c({1, 1}, 5);
    c.init_all();
    c.merge = std::make_unique<FenceMerge>(FenceMerge::Level::root, 6, 2);
    EXPECT_EQ(c.ask(0, "cmd=barrier_in"), kError);
    ASSERT_EQ(c.faults.size(), 1u);
    EXPECT_NE(c.faults[0].line.find("a fence of epoch 5, this is epoch 6"), std::string::npos);
}

TEST(Engine, NothingIsAskedDirectly) {
    Cluster c({1});
    c.of(0).asked({1, 3, 7, Rank(0)});
    c.of(0).answered({1, 0, 7, "x", {}});
    c.run();
    ASSERT_EQ(c.modex.size(), 1u);
    EXPECT_EQ(c.modex[0].to, 3u);
    EXPECT_EQ(c.modex[0].number, 7u);
    EXPECT_NE(c.modex[0].fault, "");
}

}  // namespace
}  // namespace fermata::pmi
