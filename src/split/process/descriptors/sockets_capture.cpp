// Sockets at a checkpoint: what the state says of each (sockets.h).
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

#include "split/process/descriptors/socket_content.h"
#include "split/process/descriptors/socket_options.h"
#include "split/process/descriptors/sockets.h"
#include "split/process/descriptors/unix_facts.h"

namespace fermata::split::process::descriptors {
namespace {

struct Socket {
    const Entry& entry;
    int domain, type;
    Address local, remote;
    Json value;

    int fd() const { return entry.fd; }
};

Address address_of(int fd, bool peer) {
    sockaddr_storage storage = {};
    socklen_t size = sizeof storage;
    int result = peer ? getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size)
                      : getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size);
    if (result != 0) return {};
    const auto* bytes = reinterpret_cast<const uint8_t*>(&storage);
    return Address(bytes, bytes + size);
}

// Which directions the program has shut down: 1 reading (not seen), 2 writing.
int tcp_shut(int fd) {
    tcp_info info = {};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
    bool closing = info.tcpi_state == TCP_FIN_WAIT1 || info.tcpi_state == TCP_FIN_WAIT2 ||
                   info.tcpi_state == TCP_CLOSING || info.tcpi_state == TCP_LAST_ACK ||
                   info.tcpi_state == TCP_TIME_WAIT;
    return closing ? 2 : 0;
}

void note_backlog(Socket& one, Lines& warnings) {
    int backlog = 128;
    tcp_info info = {};
    socklen_t size = sizeof info;
    // For a listening socket the kernel puts the backlog there (net/ipv4/tcp.c, tcp_get_info).
    if (one.domain != AF_UNIX && getsockopt(one.fd(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
        info.tcpi_sacked > 0)
        backlog = static_cast<int>(info.tcpi_sacked);
    uint32_t waiting = info.tcpi_unacked;
    if (one.domain == AF_UNIX) {
        UnixFacts facts = ask_unix(one.entry.status.st_ino);
        if (facts.backlog != 0) backlog = static_cast<int>(facts.backlog);
        waiting = facts.waiting;
    }
    one.value["backlog"] = backlog;
    if (waiting != 0)
        warnings.push_back(one.entry.who() + ": " + std::to_string(waiting) + " connections to " +
                           text_of(one.local) + " wait to be accepted: after a restart they are gone");
}

Socket look_at_socket(const Entry& entry, Lines& warnings) {
    int fd = entry.fd, domain = option(fd, SOL_SOCKET, SO_DOMAIN), type = option(fd, SOL_SOCKET, SO_TYPE);
    Socket one{entry,
               domain,
               type,
               address_of(fd, false),
               // Every netlink socket has a peer: the kernel.
               domain == AF_NETLINK ? Address{} : address_of(fd, true),
               {}};
    bool listening = option(fd, SOL_SOCKET, SO_ACCEPTCONN) != 0;
    one.value = {{"fd", fd},
                 {"domain", domain},
                 {"type", type},
                 {"protocol", option(fd, SOL_SOCKET, SO_PROTOCOL)},
                 {"local", Json::binary(one.local)},
                 {"remote", Json::binary(one.remote)},
                 {"listening", listening},
                 {"pair", -1}};
    if (listening) note_backlog(one, warnings);
    one.value["options"] = capture_options(fd, domain, type, one.value["protocol"], warnings);
    one.value["groups"] = capture_groups(fd, domain, warnings);
    refuse_descriptors_on_their_way(fd);
    return one;
}

// Finds the other end, and what waits.
void look_at_connection(Socket& one, const std::vector<Socket>& all, Lines& warnings) {
    auto pair_with = [&](auto is_peer) {
        for (size_t k = 0; k < all.size(); ++k)
            if (is_peer(all[k])) one.value["pair"] = k;
    };
    if (one.domain == AF_UNIX) {
        UnixFacts facts = ask_unix(one.entry.status.st_ino);
        one.value["shut"] = facts.shut;
        if (facts.peer != 0)
            pair_with([&](const Socket& other) { return other.entry.status.st_ino == facts.peer; });
    } else if (one.type == SOCK_STREAM) {
        pair_with([&](const Socket& other) {
            return &other != &one && other.local == one.remote && other.remote == one.local;
        });
        one.value["shut"] = tcp_shut(one.fd());
        if (one.value["pair"] != -1) refuse_bytes_on_their_way(one.fd());
    }
    if (one.value["pair"] != -1 || (one.domain == AF_UNIX && one.type == SOCK_STREAM))
        one.value["waiting"] = waiting_in(one.fd(), one.type);
    if (one.value["pair"] == -1 && one.type != SOCK_DGRAM)
        warnings.push_back(one.entry.who() + ": the connection to " + text_of(one.remote) +
                           " is not saved: after a restart it is closed by the peer");
}

void warn_of_losses(const Socket& one, Lines& warnings) {
    if (one.type == SOCK_DGRAM && !one.value.contains("waiting"))
        if (std::string what = lost_messages(one.fd()); !what.empty())
            warnings.push_back(
                one.entry.who() + ": " + what + " for " + text_of(one.local) +
                " that the program has not received yet: after a restart they are gone, as the "
                "network may lose them");
    if (one.domain != AF_UNIX && one.domain != AF_INET && one.domain != AF_INET6)
        warnings.push_back(one.entry.who() + ": a socket of family " + std::to_string(one.domain) +
                           " comes back without its state");
}

}  // namespace

int option(int fd, int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(fd, level, name, &value, &size) == 0 ? value : 0;
}

std::string text_of(const Address& address) {
    if (address.size() < sizeof(sa_family_t)) return "?";
    sockaddr_storage storage = {};
    std::memcpy(&storage, address.data(), std::min(address.size(), sizeof storage));
    char text[INET6_ADDRSTRLEN] = "?";
    if (storage.ss_family == AF_INET) {
        auto& in = reinterpret_cast<sockaddr_in&>(storage);
        inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
        return std::string(text) + ":" + std::to_string(ntohs(in.sin_port));
    }
    if (storage.ss_family == AF_INET6) {
        auto& in = reinterpret_cast<sockaddr_in6&>(storage);
        inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text);
        return "[" + std::string(text) + "]:" + std::to_string(ntohs(in.sin6_port));
    }
    if (storage.ss_family == AF_UNIX && address.size() > sizeof(sa_family_t)) {
        std::string path(address.begin() + sizeof(sa_family_t), address.end());
        if (path[0] == 0) path[0] = '@';
        return path.substr(0, path.find('\0'));
    }
    return "unnamed";
}

void capture_sockets(Capture& capture) {
    std::vector<Socket> sockets;
    std::vector<Described*> described;
    for (Described& one : capture.all) {
        if (one.operations->kind != Kind::socket) continue;
        sockets.push_back(look_at_socket(*one.entry, capture.warnings));
        described.push_back(&one);
    }
    for (Socket& one : sockets)
        if (!one.remote.empty()) look_at_connection(one, sockets, capture.warnings);
    for (const Socket& one : sockets) warn_of_losses(one, capture.warnings);
    for (size_t i = 0; i < sockets.size(); ++i) described[i]->saved["socket"] = std::move(sockets[i].value);
}

}  // namespace fermata::split::process::descriptors
