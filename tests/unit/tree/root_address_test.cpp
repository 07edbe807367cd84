// How a daemon finds the root among those that listen where it may be.
#include "tree/root_address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>

#include <atomic>
#include <thread>

#include "base/error.h"

namespace fermata::tree {
namespace {

struct Listener {
    Fd fd;
    uint16_t port = 0;
    Listener() : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in where{};
        where.sin_family = AF_INET;
        where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof where;
        EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&where), size), 0);
        EXPECT_EQ(::listen(fd.get(), 10), 0);
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&where), &size);
        port = ntohs(where.sin_port);
    }
    Fd accept_within(int ms) const {
        pollfd wait{fd.get(), POLLIN, 0};
        return ::poll(&wait, 1, ms) == 1 ? Fd(::accept(fd.get(), nullptr, nullptr)) : Fd();
    }
    std::string address(const std::string& place = this_place()) const {
        return fmt::format("127.0.0.1:{}@{}", port, place);
    }
};

// Says a byte now and then, for ever.
void drip(const Listener& listener, const std::atomic<bool>& over, std::atomic<int>& heard) {
    Fd peer;
    while (!over) {
        if (Fd one = listener.accept_within(100)) {
            peer = std::move(one);
            ++heard;
        }
        if (peer) ::send(peer.get(), "x", 1, MSG_NOSIGNAL);
    }
}

// Lets in who knows the key, and counts who proves it.
void answer(const Listener& listener, const wire::Key& key, const std::atomic<bool>& over, int& proofs) {
    while (!over) {
        Fd peer = listener.accept_within(100);
        if (!peer) continue;
        wire::Handshake shake(wire::Role::root, key);
        char buffer[512];
        while (!shake.done() && !shake.failed()) {
            ssize_t n = ::recv(peer.get(), buffer, sizeof buffer, 0);
            if (n <= 0) break;
            std::string said = shake.feed(buffer, static_cast<size_t>(n));
            ::send(peer.get(), said.data(), said.size(), MSG_NOSIGNAL);
        }
        if (shake.done()) ++proofs;
    }
}

TEST(RootAddress, SlowStrangerCostsLittle) {
    wire::Key key = wire::random_key();
    Listener slow, root;
    std::atomic<bool> over = false;
    std::atomic<int> heard = 0;
    int proofs = 0;
    std::thread stranger([&] { drip(slow, over, heard); }), right([&] { answer(root, key, over, proofs); });
    int64_t start = now_ms();
    // Strangers before and behind; the root's own once more, as a host with several addresses has it.
    connect_to_root(slow.address() + "," + slow.address() + "," + root.address() + "," + root.address() +
                        "," + slow.address(),
                    key, 60000);
    EXPECT_LT(now_ms() - start, 5000);
    over = true;
    stranger.join();
    right.join();
    EXPECT_GT(heard, 0);
    EXPECT_EQ(proofs, 1);
}

TEST(RootAddress, StrangersOnlyEndInTime) {
    Listener slow;
    std::atomic<bool> over = false;
    std::atomic<int> heard = 0;
    std::thread stranger([&] { drip(slow, over, heard); });
    int64_t start = now_ms();
    EXPECT_THROW(connect_to_root(slow.address(), wire::random_key(), 1500), Error);
    EXPECT_LT(now_ms() - start, 5000);
    over = true;
    stranger.join();
}

TEST(RootAddress, AnotherPlacesLoopbackIsNotTried) {
    Listener there;
    EXPECT_THROW(connect_to_root(there.address("elsewhere"), wire::random_key(), 60000), Error);
    EXPECT_FALSE(there.accept_within(0));
    EXPECT_EQ(
        parse_addresses("127.0.0.1:1,127.3.4.5:2@x,[::1]:3@x,[::ffff:127.0.0.1]:4@x,10.0.0.1:5", "y").size(),
        1u);
    EXPECT_EQ(parse_addresses(addresses_of_this_host(4711), this_place())[0].where.ss_family, AF_INET);
}

}  // namespace
}  // namespace fermata::tree
