// Connections from below, once they have proved the key.
#include "tree/links.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "polled.h"

namespace fermata::tree {
namespace {

struct Below {
    wire::Key key = wire::random_key();
    Links links{key};
    Fd socket;
    int heard = 0;

    Below() {
        links.on_message = [this](int, const wire::Message&) { ++heard; };
        links.on_closed = [](int, Links::End) {};
        socket = caller_of(links.port(), 0);
    }
    void say(const std::string& bytes) const {
        EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    }
    std::string hear() const {
        std::string bytes(4096, '\0');
        bytes.resize(static_cast<size_t>(::recv(socket.get(), bytes.data(), bytes.size(), 0)));
        return bytes;
    }
    void turn() { turn_of(links, 1000); }
};

// What a channel of this end writes for it.
std::string sealed(const wire::Handshake& shake, const wire::Message& message) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    Fd other(ends[1]);
    Channel channel(Fd(ends[0]), 4096, shake.outgoing(), shake.incoming());
    channel.send(message);
    channel.flush(1000);
    std::string bytes(4096, '\0');
    bytes.resize(static_cast<size_t>(::recv(other.get(), bytes.data(), bytes.size(), 0)));
    return bytes;
}

TEST(Links, WordsThatCameWithTheProofAreReadAtOnce) {
    Below below;
    wire::Handshake shake(wire::Role::node, below.key);
    below.say(shake.hello());
    below.turn();
    const std::string answer = below.hear(), proof = shake.feed(answer.data(), answer.size());
    ASSERT_TRUE(shake.done());
    below.say(proof + sealed(shake, wire::Leave{}));
    for (int turns = 0; below.links.count() == 0 && turns < 100; ++turns) below.turn();
    ASSERT_EQ(below.links.count(), 1u);
    EXPECT_EQ(below.heard, 0);
    EXPECT_EQ(below.links.rest(1000), 0);
    below.turn();
    EXPECT_EQ(below.heard, 1);
    EXPECT_GT(below.links.rest(1000), 0);
}

}  // namespace
}  // namespace fermata::tree
