// The root's door: a crowd stands before it, and who knows the key gets through.
#include "tree/guests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/error.h"
#include "polled.h"
#include "tree/channel.h"
#include "tree/listen.h"
#include "tree/root_address.h"

namespace fermata::tree {
namespace {

struct Door {
    uint16_t port = 0;
    wire::Key key = wire::random_key();
    Guests guests;
    int proved = 0;

    Door() : guests(listen_tcp(port), key) {
        guests.on_proof = [this](Fd, const wire::Handshake&) { ++proved; };
    }
    Fd stranger() const { return caller_of(port, SOCK_NONBLOCK); }
    void turn() { turn_of(guests, 20); }
};

TEST(Guests, WhoKnowsTheKeyGetsThroughTheCrowd) {
    Door door;
    std::vector<Fd> crowd;
    for (int i = 0; i < 500; ++i) crowd.push_back(door.stranger());
    std::atomic<bool> through = false;
    std::thread daemon([&] {
        connect_to_root(fmt::format("127.0.0.1:{}@{}", door.port, this_place()), door.key, 60000);
        through = true;
    });
    int64_t start = now_ms();
    size_t most = 0;
    while ((!through || door.proved == 0) && now_ms() - start < 50000) {
        door.turn();
        most = std::max(most, door.guests.count());
        for (int i = 0; i < 5; ++i) crowd.push_back(door.stranger());
        if (crowd.size() > 800) crowd.erase(crowd.begin(), crowd.begin() + 100);
    }
    daemon.join();
    EXPECT_EQ(door.proved, 1);
    EXPECT_GT(most, 100u);
    EXPECT_LE(most, 256u);
}

TEST(Guests, AFewAreServedAtOnceAndAFloodRests) {
    Door door;
    auto one_more = [&door, coming = std::vector<Fd>()]() mutable {
        coming.push_back(door.stranger());
        door.turn();
        return door.guests.rest(1000);
    };
    EXPECT_EQ(one_more(), 1000);
    EXPECT_EQ(one_more(), 1000);
    int rest = 1000;
    for (int turns = 0; rest == 1000 && turns < 5000; ++turns) rest = one_more();
    EXPECT_LE(rest, 10);
}

TEST(Guests, OthersKeyIsSentAway) {
    Door door;
    std::atomic<bool> over = false;
    std::thread stranger([&] {
        EXPECT_ANY_THROW(connect_to_root(fmt::format("127.0.0.1:{}@{}", door.port, this_place()),
                                         wire::random_key(), 500));
        over = true;
    });
    while (!over) door.turn();
    stranger.join();
    EXPECT_EQ(door.proved, 0);
    for (int i = 0; i < 20; ++i) door.turn();
    EXPECT_EQ(door.guests.count(), 0u);
}

}  // namespace
}  // namespace fermata::tree
