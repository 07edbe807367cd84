// The root's end of the tree over real sockets, where who loses its connection is lost: flat, and deep.
#include <gtest/gtest.h>

#include "tree/root_address.h"
#include "tree/tree.h"

namespace fermata::tree {
namespace {

class Sockets : public testing::Test {
  protected:
    const wire::Key key_ = wire::random_key();
    Tree tree_;
    std::vector<int> lost_;
    int calls_ = 0;

    explicit Sockets(Manners manners = {}) : tree_(key_, manners) {
        tree_.on_message = [](int, const wire::Message&) {};
        tree_.on_call = [this](const std::string&) { ++calls_; };
        tree_.on_here = [](int) {};
        tree_.on_lost = [this](int node, const NodeInfo&) { lost_.push_back(node); };
    }
    template <class Done>
    bool until(Done done) {
        for (int64_t end = now_ms() + 20000; now_ms() < end;) {
            if (done()) return true;
            std::vector<pollfd> fds;
            tree_.add_to(fds);
            ::poll(fds.data(), fds.size(), 5);
            tree_.serve(fds, 0);
        }
        return false;
    }
    Channel connect() {
        std::vector<Connecting::Target> targets;
        for (const Address& address : parse_addresses(addresses_of_this_host(tree_.port()), this_place()))
            targets.push_back({address, kHeadStartMs, 0});
        Connecting connecting(targets, key_);
        std::optional<Channel> made;
        EXPECT_TRUE(until([&] {
            std::vector<pollfd> fds;
            connecting.add_to(fds);
            ::poll(fds.data(), fds.size(), 1);
            made = connecting.serve(fds, 0);
            return made.has_value();
        }));
        return std::move(*made);
    }
    std::optional<wire::Message> heard(Channel& channel) {
        std::optional<wire::Message> message;
        until([&] {
            channel.serve(POLLIN | POLLOUT);
            message = channel.receive();
            return message.has_value() || channel.closed();
        });
        return message;
    }
    // A daemon that has registered and answered the first call.
    Channel registered(const std::string& addresses) {
        Channel daemon = connect();
        daemon.send(wire::NodeHello{"h", 1, addresses});
        auto parent = heard(daemon);
        EXPECT_TRUE(parent && std::holds_alternative<wire::Parent>(*parent));
        auto roll = heard(daemon);
        EXPECT_TRUE(roll && std::holds_alternative<wire::Roll>(*roll));
        const int node = std::get<wire::Parent>(*parent).node;
        daemon.send(wire::Here{std::get<wire::Roll>(*roll).number, {node}, {}});
        EXPECT_TRUE(until([&] { return tree_.whole(); }));
        return daemon;
    }
};

class DeepSockets : public Sockets {
  protected:
    DeepSockets() : Sockets(Manners{2, {}}) {}
    // Has registered, and been sent to this parent.
    Channel sent_below(const std::string& addresses, int parent_node) {
        Channel daemon = connect();
        daemon.send(wire::NodeHello{"h", 1, addresses});
        auto parent = heard(daemon);
        EXPECT_TRUE(parent && std::holds_alternative<wire::Parent>(*parent));
        EXPECT_EQ(std::get<wire::Parent>(*parent).way.at(0).node, parent_node);
        return daemon;
    }
};

// A launcher and its daemons say things to each other once: nothing of that may be missing.
TEST_F(Sockets, InAFlatTreeALostConnectionIsALostDaemon) {
    tree_.stay_flat();
    tree_.allow_no_return();
    Channel stays = registered("a");
    {
        Channel goes = registered("b");
        EXPECT_EQ(tree_.nodes().size(), 2u);
    }
    ASSERT_TRUE(until([&] { return !lost_.empty(); }));
    EXPECT_EQ(lost_, std::vector<int>{1});
    EXPECT_EQ(calls_, 1);
    EXPECT_EQ(tree_.nodes().size(), 1u);
    Channel back = connect();
    back.send(wire::Attach{1, 0, 1});
    EXPECT_FALSE(heard(back));
    EXPECT_TRUE(back.closed());
    EXPECT_EQ(lost_.size(), 1u);
}

// A daemon takes those along that were sent below it; others stay.
TEST_F(DeepSockets, WhoIsLostTakesThoseBelowAlong) {
    tree_.allow_no_return();
    std::optional<Channel> above = registered("a");
    Channel other = registered("b");
    Channel below = sent_below("c", 0), far = sent_below("d", 1);
    above->send(wire::Here{1, {2}, {}});
    other.send(wire::Here{1, {3}, {}});
    ASSERT_TRUE(until([&] { return tree_.whole(); }));
    EXPECT_EQ(tree_.children(), 2u);
    EXPECT_EQ(tree_.child_above(2), 0);
    above.reset();
    ASSERT_TRUE(until([&] { return lost_.size() >= 2; }));
    EXPECT_EQ(lost_, (std::vector<int>{0, 2}));
    EXPECT_EQ(tree_.nodes().size(), 2u);
}

// Its parent was not to be found: it has said nothing that could be lost.
TEST_F(DeepSockets, WhoIsStillComingMayComeToTheRoot) {
    tree_.allow_no_return();
    Channel above = registered("a"), other = registered("b");
    Channel comes = sent_below("c", 0);
    Channel back = connect();
    back.send(wire::Attach{2, 0, 0});
    auto roll = heard(back);
    ASSERT_TRUE(roll && std::holds_alternative<wire::Roll>(*roll));
    back.send(wire::Here{1, {2}, {}});
    ASSERT_TRUE(until([&] { return tree_.whole(); }));
    Channel again = connect();
    again.send(wire::Attach{2, 0, 1});
    EXPECT_FALSE(heard(again));
    EXPECT_TRUE(lost_.empty());
}

TEST_F(Sockets, OtherwiseItMayComeBack) {
    { Channel goes = registered("a"); }
    ASSERT_TRUE(until([&] { return calls_ == 1; }));
    EXPECT_FALSE(tree_.whole());
    Channel back = connect();
    back.send(wire::Attach{0, 0, 1});
    auto roll = heard(back);
    ASSERT_TRUE(roll && std::holds_alternative<wire::Roll>(*roll));
    back.send(wire::Here{std::get<wire::Roll>(*roll).number, {0}, {}});
    EXPECT_TRUE(until([&] { return tree_.whole(); }));
    EXPECT_TRUE(lost_.empty());
}

}  // namespace
}  // namespace fermata::tree
