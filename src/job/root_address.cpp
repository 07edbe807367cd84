#include "job/root_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "job/local_socket.h"

namespace fermata::job {
namespace {

struct Address {
    sockaddr_storage where{};
    socklen_t size = 0;
};

std::vector<Address> parse(const std::string& text) {
    std::vector<Address> all;
    for (size_t at = 0; at < text.size();) {
        size_t end = std::min(text.find(',', at), text.size());
        std::string one = text.substr(at, end - at);
        at = end + 1;
        size_t colon = one.rfind(':');
        if (colon == std::string::npos) continue;
        std::string host = one.substr(0, colon);
        if (host.size() > 2 && host[0] == '[') host = host.substr(1, host.size() - 2);
        addrinfo hints{}, *found = nullptr;
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
        hints.ai_socktype = SOCK_STREAM;
        if (::getaddrinfo(host.c_str(), one.c_str() + colon + 1, &hints, &found) != 0) continue;
        Address a;
        std::memcpy(&a.where, found->ai_addr, found->ai_addrlen);
        a.size = found->ai_addrlen;
        ::freeaddrinfo(found);
        all.push_back(a);
    }
    return all;
}

// A connected and authenticated channel, or nothing.
std::optional<Channel> try_one(const Address& address, const wire::Key& key, int64_t end) {
    Fd sock(::socket(address.where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!sock) return std::nullopt;
    auto wait = [&](short what) {
        int64_t left = std::min<int64_t>(end - now_ms(), 5000);
        pollfd fd{sock.get(), what, 0};
        return left > 0 && ::poll(&fd, 1, static_cast<int>(left)) == 1;
    };
    if (::connect(sock.get(), reinterpret_cast<const sockaddr*>(&address.where), address.size) != 0) {
        if (errno != EINPROGRESS || !wait(POLLOUT)) return std::nullopt;
        int error = 0;
        socklen_t size = sizeof error;
        if (::getsockopt(sock.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
            return std::nullopt;
    }
    tune_tcp(sock.get());
    wire::Handshake shake(wire::Role::node, key);
    std::string out = shake.hello();
    char buffer[4096];
    for (;;) {
        while (!out.empty()) {
            ssize_t n = ::send(sock.get(), out.data(), out.size(), MSG_NOSIGNAL);
            if (n > 0)
                out.erase(0, static_cast<size_t>(n));
            else if (errno != EINTR && !(errno == EAGAIN && wait(POLLOUT)))
                return std::nullopt;
        }
        if (shake.done()) break;
        if (!wait(POLLIN)) return std::nullopt;
        ssize_t n = ::recv(sock.get(), buffer, sizeof buffer, 0);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) return std::nullopt;
        out = shake.feed(buffer, static_cast<size_t>(n));
        if (shake.failed()) {
            spdlog::info("{}", shake.error());
            return std::nullopt;
        }
    }
    Channel channel(std::move(sock), wire::kMaxPayload, shake.outgoing(), shake.incoming());
    channel.feed(shake.rest());
    return channel;
}

}  // namespace

void tune_tcp(int socket) {
    auto set = [&](int level, int option, int value) {
        ::setsockopt(socket, level, option, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set(IPPROTO_TCP, TCP_KEEPCNT, 4);
}

std::string addresses_of_this_host(uint16_t port) {
    std::string all = fmt::format("127.0.0.1:{}", port);
    ifaddrs* list = nullptr;
    if (::getifaddrs(&list) != 0) return all;
    for (ifaddrs* i = list; i; i = i->ifa_next) {
        if (!i->ifa_addr || (i->ifa_flags & IFF_LOOPBACK) || !(i->ifa_flags & IFF_UP)) continue;
        int family = i->ifa_addr->sa_family;
        // Link-local IPv6 addresses mean nothing on another node.
        if (family == AF_INET6 &&
            IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<sockaddr_in6*>(i->ifa_addr)->sin6_addr))
            continue;
        char host[NI_MAXHOST];
        socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        if ((family != AF_INET && family != AF_INET6) ||
            ::getnameinfo(i->ifa_addr, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0)
            continue;
        all += family == AF_INET ? fmt::format(",{}:{}", host, port) : fmt::format(",[{}]:{}", host, port);
    }
    ::freeifaddrs(list);
    return all;
}

Channel connect_to_root(const std::string& addresses, const wire::Key& key, int timeout_ms) {
    std::vector<Address> all = parse(addresses);
    int64_t end = now_ms() + timeout_ms;
    std::minstd_rand random(std::random_device{}());
    for (int pause = 20; now_ms() < end; pause = std::min(pause * 2, 2000)) {
        for (const Address& address : all)
            if (auto channel = try_one(address, key, end)) return std::move(*channel);
        ::usleep(static_cast<useconds_t>(1000 * (pause / 2 + static_cast<int>(random() % pause))));
    }
    fail("cannot reach the root of this job at {} from this node: is a firewall between the nodes?",
         addresses);
}

}  // namespace fermata::job
