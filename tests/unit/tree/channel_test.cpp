// Words of one turn go out by one call of the kernel.
#include "tree/channel.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

namespace fermata::tree {
namespace {

struct Ends {
    Fd other;
    std::optional<Channel> channel;
    Ends() {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
        other = Fd(ends[1]);
        channel.emplace(Fd(ends[0]), 4096);
    }
    // All that has arrived by now.
    size_t arrived() const {
        char buffer[65536];
        const ssize_t n = ::recv(other.get(), buffer, sizeof buffer, 0);
        return n > 0 ? static_cast<size_t>(n) : 0;
    }
};

const wire::Bytes kFrame = wire::encode(wire::Freeze{7});

TEST(Channel, WhatIsSentIsWrittenAtOnce) {
    Ends ends;
    ends.channel->send(wire::Freeze{7});
    EXPECT_EQ(ends.arrived(), kFrame.size());
}

TEST(Channel, WhatIsPutWaitsForThePoll) {
    Ends ends;
    ends.channel->put(wire::Freeze{7});
    EXPECT_EQ(ends.arrived(), 0u);
    EXPECT_TRUE(ends.channel->has_unwritten());
    EXPECT_EQ(ends.channel->events(), POLLIN);
    EXPECT_EQ(ends.arrived(), kFrame.size());
    EXPECT_FALSE(ends.channel->has_unwritten());
}

TEST(Channel, WhatIsPutGoesWithTheNextThatIsSentAndBeforeIt) {
    Ends ends;
    ends.channel->put(kFrame);
    ends.channel->send(wire::Take{8});
    wire::Bytes bytes(4096);
    bytes.resize(static_cast<size_t>(::recv(ends.other.get(), bytes.data(), bytes.size(), 0)));
    wire::Decoder decoder;
    decoder.feed(bytes.data(), bytes.size());
    auto first = decoder.next(), second = decoder.next();
    ASSERT_TRUE(first && second && decoder.empty());
    EXPECT_TRUE(std::holds_alternative<wire::Freeze>(*first));
    EXPECT_TRUE(std::holds_alternative<wire::Take>(*second));
}

// A peer that does not read: poll says when it can be written to, and one that never does is given up.
TEST(Channel, APeerThatDoesNotReadIsWaitedForAndThenGivenUp) {
    Ends ends;
    const wire::Bytes large = wire::encode(wire::Diagnosis{std::string(1 << 20, 'x')});
    ends.channel->put(large);
    EXPECT_EQ(ends.channel->events(), POLLIN | POLLOUT);
    size_t all = 0;
    for (int turn = 0; turn < 1000 && ends.channel->has_unwritten(); ++turn) {
        all += ends.arrived();
        ends.channel->serve(POLLOUT);
    }
    while (const size_t more = ends.arrived()) all += more;
    EXPECT_EQ(all, large.size());
    for (int i = 0; i < 140 && !ends.channel->closed(); ++i) ends.channel->put(large);
    EXPECT_TRUE(ends.channel->closed());
}

}  // namespace
}  // namespace fermata::tree
