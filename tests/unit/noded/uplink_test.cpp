// A daemon that was sent to a parent goes on trying until somebody answers, also while its connection to the
// root stays.
#include "noded/uplink.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>

#include "tree/local_socket.h"
#include "tree/root_address.h"

namespace fermata::noded {
namespace {

// A port that refuses until listen() is called.
struct Port {
    Fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    std::string address;
    Port() {
        sockaddr_in where{};
        where.sin_family = AF_INET;
        where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof where;
        EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&where), size), 0);
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&where), &size);
        address = fmt::format("127.0.0.1:{}@{}", ntohs(where.sin_port), tree::this_place());
    }
};

TEST(Uplink, ParentThatAnswersLaterIsFound) {
    const wire::Key key = wire::random_key();
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    Fd root_end(pair[0]);
    Port parent, root;
    Uplink uplink(tree::Channel(Fd(pair[1]), 4096), key, root.address);
    bool connected = false;
    uplink.on_message = [](const wire::Message&) {};
    uplink.on_connected = [&] { connected = true; };
    uplink.on_lost = [] { ADD_FAILURE() << "the root has not gone"; };

    Fd guest;
    wire::Handshake shake(wire::Role::root, key);
    auto answer = [&] {
        if (!guest) guest = Fd(::accept4(parent.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        char buffer[512];
        ssize_t n = guest ? ::recv(guest.get(), buffer, sizeof buffer, 0) : 0;
        if (n <= 0) return;
        const std::string said = shake.feed(buffer, static_cast<size_t>(n));
        ::send(guest.get(), said.data(), said.size(), MSG_NOSIGNAL);
    };
    auto turn = [&] {
        std::vector<pollfd> fds;
        uplink.add_to(fds);
        ::poll(fds.data(), fds.size(), std::min(uplink.rest(5), 5));
        uplink.serve(fds, 0);
    };
    uplink.follow({1, 0, {{0, parent.address}}, 5000, 30000});
    for (int64_t end = tree::now_ms() + 300; tree::now_ms() < end;) turn();
    EXPECT_FALSE(connected);
    ASSERT_EQ(::listen(parent.fd.get(), 10), 0);
    tree::set_nonblocking(parent.fd.get());
    for (int64_t end = tree::now_ms() + 20000; !connected && tree::now_ms() < end;) {
        turn();
        answer();
    }
    EXPECT_TRUE(connected);
    EXPECT_EQ(uplink.lost_since(), 0);
}

// The root waits for its file system: its kernel lets the connection in, and nobody speaks. When nobody
// listens any more, it is gone.
TEST(Uplink, RootThatIsBusyIsNotGone) {
    const wire::Key key = wire::random_key();
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    Fd root_end(pair[0]);
    Port root;
    ASSERT_EQ(::listen(root.fd.get(), 10), 0);
    Uplink uplink(tree::Channel(Fd(pair[1]), 4096), key, root.address);
    bool lost = false;
    uplink.on_message = [](const wire::Message&) {};
    uplink.on_connected = [] { ADD_FAILURE() << "nobody has proved itself"; };
    uplink.on_lost = [&] { lost = true; };
    auto turns = [&](int64_t ms) {
        for (int64_t end = tree::now_ms() + ms; tree::now_ms() < end;) {
            std::vector<pollfd> fds;
            uplink.add_to(fds);
            ::poll(fds.data(), fds.size(), std::min(uplink.rest(20), 20));
            uplink.serve(fds, 0);
        }
    };
    root_end.reset();
    turns(1500);
    ASSERT_TRUE(lost);
    EXPECT_LT(tree::now_ms() - uplink.lost_since(), 1000);
    EXPECT_GT(uplink.lost_since(), 0);
    root.fd.reset();
    const int64_t gone = tree::now_ms();
    turns(1500);
    EXPECT_LT(uplink.lost_since(), gone + 1000);
    EXPECT_GT(uplink.lost_since(), 0);
}

}  // namespace
}  // namespace fermata::noded
