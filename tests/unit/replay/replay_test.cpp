// The message log: its parts alone, then whole jobs with random programs, deaths, hops and drains.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cases.h"

namespace fermata::replay::test {
namespace {

Instance nth(uint64_t n) { return static_cast<Instance>(n); }

TEST(ToldSet, KeepsAPrefixAndWhatLiesBeyond) {
    ToldSet set;
    set.add(nth(3));
    set.add(nth(1));
    EXPECT_EQ(set.prefix(), nth(1));
    EXPECT_TRUE(set.has(nth(3)));
    EXPECT_FALSE(set.has(nth(2)));
    EXPECT_EQ(set.last(), nth(3));
    set.add(nth(2));
    EXPECT_EQ(set.prefix(), nth(3));
    EXPECT_TRUE(set.beyond().empty());
}

TEST(ToldSet, Together) {
    ToldSet a, b;
    for (uint64_t n : {1, 2, 4, 6}) a.add(nth(n));
    for (uint64_t n : {1, 4, 5}) b.add(nth(n));
    EXPECT_FALSE(a.has_all_of(b));
    ToldSet both = a;
    both.keep_those_in(b);
    EXPECT_TRUE(both.has(nth(4)));
    EXPECT_FALSE(both.has(nth(2)));
    EXPECT_FALSE(both.has(nth(6)));
    a.add_all(b);
    EXPECT_TRUE(a.has_all_of(b));
    EXPECT_EQ(a.beyond().size(), 3u);
}

const uint8_t* as_bytes(const char* text) { return reinterpret_cast<const uint8_t*>(text); }
std::string as_text(const Bytes& bytes) { return std::string(bytes.begin(), bytes.end()); }

TEST(OutputEnd, ForwardsWhatIsStableAndWhatTheRootDoesNotHave) {
    OutputEnd end;
    end.write(Position{1}, as_bytes("one "), 4, true);
    end.write(Position{5}, as_bytes("five"), 4, true);
    EXPECT_EQ(as_text(end.ready(Position{0}, 0)), "");
    EXPECT_EQ(as_text(end.ready(Position{4}, 0)), "one ");
    EXPECT_EQ(as_text(end.ready(Position{5}, 2)), "e five") << "from the middle of a write";
    end.root_has(4);
    EXPECT_EQ(as_text(end.ready(Position{5}, 4)), "five");
}

TEST(Finish, ReleasesOnceAndNotInARecovery) {
    Finish finish(2);
    finish.arrived(Rank(0));
    finish.arrived(Rank(0));
    EXPECT_FALSE(finish.may_release(false));
    finish.arrived(Rank(1));
    EXPECT_FALSE(finish.may_release(true));
    EXPECT_TRUE(finish.may_release(false));
}

TEST(Ways, AllreduceGoesOnFromTheResult) {
    Planned planned{nth(1), {Rank(1)}};
    Arguments allreduce{Kind::allreduce, {}, true, true, false};
    EXPECT_EQ(normal_way(allreduce, {}), Way::native);
    EXPECT_EQ(planned_way(allreduce, planned, Rank(0), {}), Way::from_result);
    Arguments scan{Kind::scan, {}, true, true, false};
    EXPECT_EQ(normal_way(scan, {}), Way::twin);
    Arguments exact{Kind::scan, {}, false, true, false};
    EXPECT_EQ(normal_way(exact, {}), Way::native);
    Arguments reduce{Kind::reduce, Rank(1), true, true, false};
    EXPECT_EQ(planned_way(reduce, planned, Rank(0), {}), Way::pass);
    reduce.root = Rank(0);
    EXPECT_EQ(planned_way(reduce, planned, Rank(0), {}), Way::twin);
}

// Numbers of a hop, of a machine whose buffers hold nothing.
Buffers empty_buffers() {
    Buffers buffers{};
    buffers.contribution = [](void*, const Request&, Bytes* out) { out->assign(8, 1); };
    buffers.arrived = [](void*, const Request&, Bytes*) {};
    buffers.deliver = [](void*, const Request&, const Bytes&) {};
    buffers.told = [](void*, const Request&) {};
    return buffers;
}

struct TwoRanks : testing::Test {
    TwoRanks() : machine(Rank(0), empty_buffers(), Options{16, {}}) {
        Vec<Rank> all{Rank(0), Rank(1)};
        machine.world(Uid{1}, all);
    }
    RequestNo send() {
        machine.enter();
        const Request& request = machine.start_send(channel, false);
        return request.no;
    }
    void tell(RequestNo no) {
        Outcome outcome{.kind = CallKind::send};
        outcome.told.push_back(no);
        machine.tell(std::move(outcome));
    }
    void send_and_tell() {
        RequestNo no = send();
        machine.issued(no);
        machine.completed(no);
        tell(no);
    }
    Orders known(uint64_t count) {
        Orders orders{Epoch{1}, {}, {}};
        orders.known.push_back(Consumed{channel, MessageNo{count}});
        return orders;
    }
    Channel channel{Uid{1}, Rank(0), Rank(1), Tag{7}};
    Machine machine;
};

TEST_F(TwoRanks, SendsAgainWhatWasNotConsumedInTheOrderOfSending) {
    send_and_tell();
    RequestNo open = send();
    machine.issued(open);
    send_and_tell();
    Vec<Action> actions = machine.recover(known(1));
    ASSERT_EQ(actions.size(), 2u);
    ASSERT_TRUE(std::holds_alternative<SendOpen>(actions[0]));
    EXPECT_EQ(std::get<SendOpen>(actions[0]).request, open);
    ASSERT_TRUE(std::holds_alternative<SendLogged>(actions[1]));
    EXPECT_EQ(std::get<SendLogged>(actions[1]).number, MessageNo{3});
    EXPECT_FALSE(machine.may_tell());
    machine.go(Epoch{1});
    EXPECT_TRUE(machine.may_tell());
}

TEST_F(TwoRanks, DoesNotSendWhatItsFormerLeaderSent) {
    machine.recover(known(2));
    machine.go(Epoch{1});
    EXPECT_EQ(machine.request(send())->stage, Stage::complete);
    EXPECT_EQ(machine.request(send())->stage, Stage::complete);
    EXPECT_EQ(machine.request(send())->stage, Stage::outside);
}

TEST_F(TwoRanks, LogIsBoundAndCutByReceipts) {
    send_and_tell();
    send_and_tell();
    EXPECT_EQ(machine.log_lacks(8), 8u);
    auto spill = machine.to_spill(1);
    ASSERT_EQ(spill.size(), 1u);
    EXPECT_EQ(std::get<SendLogged>(spill[0].what).number, MessageNo{1});
    machine.spilled(spill[0], Spilled{4096, 8, 1});
    EXPECT_EQ(machine.log_lacks(8), 0u);
    EXPECT_EQ(machine.use().held, 8u);
    EXPECT_EQ(machine.use().spilled, 8u);
    EXPECT_EQ(machine.logged(channel, MessageNo{1})->spilled->place, 4096u);
    EXPECT_EQ(std::get<SendLogged>(machine.to_spill(1)[0].what).number, MessageNo{2});
    EXPECT_TRUE(machine.take_over().empty());
    machine.receipt(Receipt{channel, MessageNo{1}, MessageNo{1}});
    EXPECT_EQ(machine.logged(channel, MessageNo{1}), nullptr);
    EXPECT_EQ(machine.take_over(), (Vec<Spilled>{{4096, 8, 1}}));
    EXPECT_TRUE(machine.take_over().empty());
    EXPECT_EQ(machine.use().spilled, 0u);
    EXPECT_FALSE(machine.logs_empty());
    machine.receipt(Receipt{channel, MessageNo{2}, MessageNo{2}});
    EXPECT_TRUE(machine.logs_empty());
    send_and_tell();
    machine.recover(known(3));
    EXPECT_FALSE(machine.logs_empty()) << "an exchange cuts nothing";
}

TEST_F(TwoRanks, InputsOfCollectivesAreSpilledAndComeBack) {
    machine.enter();
    std::optional<Take> take;
    RequestNo no =
        machine.start_collective(Uid{1}, Arguments{Kind::allreduce, {}, false, true, false}, &take).no;
    machine.issued(no);
    machine.completed(no);
    tell(no);
    send_and_tell();
    EXPECT_EQ(machine.use().held, 16u);
    auto spill = machine.to_spill(16);
    ASSERT_EQ(spill.size(), 2u) << "the message, then the call";
    Bytes bytes;
    machine.bytes_of(spill[1], &bytes);
    const Spilled where{0, bytes.size(), 3};
    machine.spilled(spill[1], where);
    const CallLogged call{Uid{1}, nth(1)};
    EXPECT_TRUE(machine.logged(call.comm, call.instance)->input.empty());
    EXPECT_EQ(machine.use().held, 8u);
    machine.comes_back(call, bytes);
    EXPECT_EQ(machine.logged(call.comm, call.instance)->input, bytes);
    EXPECT_EQ(machine.use().held, 16u);
    EXPECT_EQ(machine.take_over(), (Vec<Spilled>{where}));
    machine.spilled(spill[1], where);
    ToldSet all;
    all.add(nth(1));
    machine.everywhere(Uid{1}, all);
    EXPECT_EQ(machine.take_over(), (Vec<Spilled>{where}));
    EXPECT_EQ(machine.use().held, 8u);
    EXPECT_EQ(machine.use().spilled, 0u);
}

struct FreedInTwoRanks : TwoRanks {
    FreedInTwoRanks() {
        machine.enter();
        std::optional<Take> way;
        RequestNo no =
            machine.start_collective(Uid{1}, Arguments{Kind::free, {}, true, false, false}, &way).no;
        machine.issued(no);
        machine.completed(no);
        Outcome outcome{.kind = CallKind::collective};
        outcome.told.push_back(no);
        machine.tell(std::move(outcome));
    }
    bool has_freed() const { return machine.told_for_good(*machine.find(Uid{1})).has(Instance{1}); }
};

TEST_F(FreedInTwoRanks, OthersHearOfItOnceNothingIsLogged) {
    EXPECT_TRUE(has_freed());
    send_and_tell();
    EXPECT_FALSE(has_freed());
    machine.receipt(Receipt{channel, MessageNo{1}, MessageNo{1}});
    EXPECT_TRUE(has_freed());
}

TEST_F(FreedInTwoRanks, IsForgottenWhereAnExchangeSaysThatAnotherMemberHas) {
    EXPECT_FALSE(machine.logs_empty()) << "its free is logged";
    machine.recover(Orders{Epoch{1}, {}, {}});
    EXPECT_EQ(machine.find(Uid{1}), nullptr);
    EXPECT_TRUE(machine.logs_empty());
}

TEST_F(TwoRanks, ReceiptsOfARankWithACopyStandOnStableRecords) {
    machine.copy(replay::Copy::follows);
    machine.enter();
    RequestNo no = machine.start_receive(Pattern{Uid{1}, {}, {}}).no;
    machine.issued(no);
    machine.received(no, Envelope{Rank(1), Tag{0}});
    Outcome outcome{.kind = CallKind::receive};
    outcome.told.push_back(no);
    Record record = machine.tell(std::move(outcome));
    EXPECT_TRUE(record.determinant) << "of any source";
    ASSERT_EQ(record.items.size(), 1u);
    EXPECT_FALSE(machine.may_send());
    EXPECT_TRUE(machine.receipts().empty());
    machine.became_stable(Position{1});
    EXPECT_TRUE(machine.may_send());
    ASSERT_EQ(machine.receipts().size(), 1u);
    EXPECT_EQ(machine.receipts()[0].count, MessageNo{1});
}

TEST_F(TwoRanks, ReceiptsSayWhatTheQueueHasOnly) {
    machine.pulled(Uid{1}, Envelope{Rank(1), Tag{7}}, Bytes(8, 1));
    machine.pulled(Uid{1}, Envelope{Rank(1), Tag{7}}, Bytes(8, 2));
    machine.enter();
    machine.start_receive(Pattern{Uid{1}, {}, {}});
    ASSERT_EQ(machine.receipts().size(), 1u);
    EXPECT_EQ(machine.receipts()[0].count, MessageNo{2});
    EXPECT_EQ(machine.receipts()[0].taken, MessageNo{1});
}

// A program may take a new tag for each message: what is quiet costs nothing.
TEST_F(TwoRanks, NewsAreOfChannelsThatWereTouched) {
    for (int tag = 0; tag < 100; tag++) machine.pulled(Uid{1}, Envelope{Rank(1), Tag{tag}}, Bytes(8, 1));
    EXPECT_EQ(machine.news().size(), 100u);
    EXPECT_TRUE(machine.news().empty());
    machine.enter();
    machine.start_receive(Pattern{Uid{1}, Rank(1), Tag{7}});
    ASSERT_EQ(machine.news().size(), 1u);
    EXPECT_EQ(machine.receipts().size(), 100u);
    machine.copy(replay::Copy::follows);
    EXPECT_EQ(machine.news().size(), 100u) << "they stand on stable records now";
}

// A rank that goes into a collective call says so before, for those who send synchronously.
TEST_F(TwoRanks, ReceiptsPromiseWhatOpenReceivesAreSureToTake) {
    const auto taken_of = [this](Tag tag) {
        for (const Receipt& one : machine.receipts())
            if (one.channel.tag == tag) {
                EXPECT_EQ(one.count, MessageNo{}) << "nothing is consumed";
                return value(one.taken);
            }
        return uint64_t{0};
    };
    machine.enter();
    machine.start_receive(Pattern{Uid{1}, Rank(1), Tag{7}});
    machine.start_receive(Pattern{Uid{1}, Rank(1), {}});
    machine.start_receive(Pattern{Uid{1}, Rank(1), Tag{7}});
    EXPECT_EQ(taken_of(Tag{7}), 2u);
    EXPECT_EQ(taken_of(Tag{8}), 0u) << "what comes first is not known";
    machine.start_receive(Pattern{Uid{1}, {}, Tag{7}});
    machine.start_receive(Pattern{Uid{1}, Rank(1), Tag{7}});
    machine.start_receive(Pattern{Uid{1}, Rank(1), Tag{8}});
    EXPECT_EQ(taken_of(Tag{7}), 2u) << "one of any source may take the third";
    EXPECT_EQ(taken_of(Tag{8}), 1u);
}

TEST_F(TwoRanks, ACopyHasWhatWasPulledBeforeIt) {
    machine.pulled(Uid{1}, Envelope{Rank(1), Tag{7}}, Bytes(8, 1));
    machine.enter();
    Machine copy = machine;
    copy.follow();
    machine.copy(replay::Copy::follows);
    ASSERT_EQ(machine.receipts().size(), 1u);
    Record record;
    for (Machine* one : {&machine, &copy}) {
        RequestNo no = one->start_receive(Pattern{Uid{1}, {}, {}}).no;
        if (one == &copy) {
            Vec<Record> ring{record};
            ASSERT_EQ(copy.said(ring).consumed.size(), 1u);
            EXPECT_EQ(copy.said(ring).consumed[0].count, MessageNo{1}) << "named, but not another one";
            EXPECT_TRUE(copy.take(record));
            EXPECT_EQ(copy.said({}).consumed[0].count, MessageNo{1});
            continue;
        }
        Outcome outcome{.kind = CallKind::receive};
        outcome.told.push_back(no);
        record = machine.tell(std::move(outcome));
    }
}

TEST_F(TwoRanks, ACopyThatHasSentOtherDataHasParted) {
    for (const bool same : {true, false}) {
        machine.enter();
        machine.copy(replay::Copy::follows);
        Machine copy = machine;
        copy.follow();
        replay::Buffers others = empty_buffers();
        others.contribution = [](void*, const Request&, Bytes* out) { out->assign(8, 9); };
        if (!same) copy.buffers(others);
        const RequestNo no = machine.start_send(channel, false).no;
        copy.start_send(channel, false);
        machine.issued(no);
        machine.completed(no);
        Outcome outcome{.kind = CallKind::send};
        outcome.told.push_back(no);
        copy.take(machine.tell(std::move(outcome)));
        EXPECT_EQ(copy.parted(), !same);
    }
}

TEST_F(TwoRanks, SynchronousSendsWaitForAReceive) {
    machine.enter();
    RequestNo no = machine.start_send(channel, true).no;
    machine.issued(no);
    machine.completed(no);
    machine.receipt(Receipt{channel, MessageNo{1}, MessageNo{0}});
    EXPECT_EQ(machine.missing(no), no) << "pulled, and no receive has it";
    machine.receipt(Receipt{channel, MessageNo{1}, MessageNo{1}});
    EXPECT_FALSE(machine.missing(no));
}

TEST_F(TwoRanks, ASendFreedWhileOpenIsSentAgain) {
    RequestNo no = send();
    machine.issued(no);
    machine.free_send(no);
    EXPECT_EQ(machine.request(no), nullptr);
    Vec<Action> actions = machine.recover(known(0));
    ASSERT_EQ(actions.size(), 1u);
    EXPECT_TRUE(std::holds_alternative<SendLogged>(actions[0]));
}

// The long form: replay-explore. REPLAY_SEED and REPLAY_PROGRAMS for others.
TEST(Job, RandomProgramsWithDeathsHopsAndDrains) {
    auto number = [](const char* name, uint64_t otherwise) {
        const char* text = getenv(name);
        return text ? strtoull(text, nullptr, 10) : otherwise;
    };
    uint64_t seed = number("REPLAY_SEED", 1), programs = number("REPLAY_PROGRAMS", 1500);
    Sum sum;
    for (uint64_t i = 0; i < programs; i++)
        for (uint64_t k = 0; k < 3; k++) {
            Case one = random_case(seed + i, k);
            Result out = Job(one.program, one.plan, one.seed).run();
            sum.add(out);
            ASSERT_EQ(out.fault, "") << "seed " << seed + i << " schedule " << k << "\n"
                                     << one.program.text();
        }
    printf("seeds %llu..%llu: %s\n", static_cast<unsigned long long>(seed),
           static_cast<unsigned long long>(seed + programs - 1), sum.text().c_str());
    if (programs < 1000) return;
    EXPECT_GT(sum.all.promotions, programs / 2);
    EXPECT_GT(sum.all.debts, programs / 2);
    EXPECT_GT(sum.all.resent, programs / 2);
    EXPECT_GT(sum.all.orphans, programs / 20);
}

}  // namespace
}  // namespace fermata::replay::test
