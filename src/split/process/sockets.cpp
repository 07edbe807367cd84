// Sockets: pairs within the process come back connected, with what waits in them; listening and unconnected
// ones are made again; a connection to somebody else reads as closed by the peer.
//
// What waits in a pair comes back whole or the checkpoint is refused: descriptors in flight (SCM_RIGHTS) and
// bytes that the sender's side still holds cannot be looked at. A TCP connection within the process comes
// back with other port numbers.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "split/process/parts.h"
#include "split/process/socket_options.h"

namespace fermata::split::process {
namespace {

int option(int fd, int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(fd, level, name, &value, &size) == 0 ? value : 0;
}

using Bytes = std::vector<uint8_t>;

Bytes address_of(int fd, bool peer) {
    sockaddr_storage storage = {};
    socklen_t size = sizeof storage;
    int result = peer ? getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size)
                      : getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size);
    if (result != 0) return {};
    const auto* bytes = reinterpret_cast<const uint8_t*>(&storage);
    return Bytes(bytes, bytes + size);
}

std::string text_of(const Bytes& address) {
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

// What only the kernel's socket diagnosis tells of a Unix socket.
struct UnixFacts {
    uint64_t peer = 0;     // inode of the other end, 0 = unknown
    uint32_t waiting = 0;  // listening: connections that nobody has accepted
    uint32_t backlog = 0;  // listening: what listen() was given
    uint8_t shut = 0;      // 1: for reading, 2: for writing
};
UnixFacts ask_unix(uint64_t inode) {
    UnixFacts facts;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0) return facts;
    struct {
        nlmsghdr header;
        unix_diag_req request;
    } query = {};
    query.header.nlmsg_len = sizeof query;
    query.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    query.header.nlmsg_flags = NLM_F_REQUEST;
    query.request.sdiag_family = AF_UNIX;
    query.request.udiag_states = 0xffffffff;
    query.request.udiag_ino = static_cast<uint32_t>(inode);
    query.request.udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN;
    query.request.udiag_cookie[0] = query.request.udiag_cookie[1] = ~0u;
    alignas(nlmsghdr) char answer[4096];
    timeval limit = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ssize_t size =
        send(fd, &query, sizeof query, 0) == sizeof query ? recv(fd, answer, sizeof answer, 0) : -1;
    auto* header = reinterpret_cast<nlmsghdr*>(answer);
    if (size > 0 && NLMSG_OK(header, static_cast<unsigned>(size)) &&
        header->nlmsg_type == SOCK_DIAG_BY_FAMILY) {
        auto* message = static_cast<unix_diag_msg*>(NLMSG_DATA(header));
        // Attributes of rtnetlink's form follow: u16 length, u16 type, value.
        auto* at = reinterpret_cast<const uint8_t*>(message + 1);
        const auto* end = reinterpret_cast<const uint8_t*>(answer) + header->nlmsg_len;
        while (at + 4 <= end) {
            uint16_t length, type;
            std::memcpy(&length, at, 2);
            std::memcpy(&type, at + 2, 2);
            if (length < 4) break;
            uint32_t value[2] = {};
            std::memcpy(value, at + 4, std::min<size_t>(length - 4u, sizeof value));
            if (type == UNIX_DIAG_PEER) facts.peer = value[0];
            if (type == UNIX_DIAG_RQLEN) facts.waiting = value[0], facts.backlog = value[1];
            if (type == UNIX_DIAG_SHUTDOWN) facts.shut = static_cast<uint8_t>(value[0]);
            at += (length + 3u) & ~3u;
        }
    }
    close(fd);
    return facts;
}

// What waits to be read, message by message (one for streams), without taking it out. All of it, or a
// refusal.
Json waiting_in(int fd, int type) {
    Json messages = Json::array();
    bool stream = type == SOCK_STREAM;
    int offset = 0, waiting = 0;
    if (!stream && setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset) != 0)
        fail("descriptor {}: what waits in the socket cannot be looked at: {}", fd, error_text(errno));
    if (stream) ioctl(fd, FIONREAD, &waiting);
    Bytes buffer(stream ? std::max(waiting, 1) : 1 << 20);
    for (;;) {
        iovec into = {buffer.data(), buffer.size()};
        msghdr message = {};
        message.msg_iov = &into;
        message.msg_iovlen = 1;
        ssize_t got = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);
        if (got < 0 || (stream && got == 0)) break;
        if ((message.msg_flags & MSG_TRUNC) != 0)
            fail("descriptor {}: a message longer than {} bytes waits in the socket", fd, buffer.size());
        messages.push_back(Json::binary(Bytes(buffer.begin(), buffer.begin() + got)));
        if (stream) break;
    }
    if (!stream) {
        offset = -1;
        setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset);
    }
    size_t got = stream && !messages.empty() ? messages[0].get_binary().size() : 0;
    if (stream && got < static_cast<size_t>(waiting))
        fail(
            "descriptor {}: only {} of the {} bytes that wait in the socket can be saved: checkpoint again "
            "when less "
            "waits",
            fd, got, waiting);
    return messages;
}

// Bytes that wait and will be lost, for people.
std::string lost_messages(int fd) {
    int offset = 0, count = 0;
    char byte;
    if (setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset) == 0) {
        while (count < 100000 && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC) >= 0) ++count;
        offset = -1;
        setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset);
    } else if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0) {
        count = 1;
    }
    return count == 0 ? "" : count == 1 ? "a message" : std::to_string(count) + " messages";
}

void put_back(int sender, const Json& messages, const std::string& who) {
    for (const Json& message : messages) {
        const auto& bytes = message.get_binary();
        for (size_t done = 0;;) {
            ssize_t sent =
                send(sender, bytes.data() + done, bytes.size() - done, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (sent < 0)
                throw Refused{who + ": not all that waited in the socket could be put back: " +
                              error_text(errno) + ": raise net.core.wmem_max and restart again"};
            done += static_cast<size_t>(sent);
            if (done >= bytes.size()) break;
        }
    }
}

// Two connected TCP sockets on the loopback.
bool tcp_pair(int domain, int ends[2]) {
    sockaddr_storage storage = {};
    socklen_t size;
    if (domain == AF_INET6) {
        auto& in = reinterpret_cast<sockaddr_in6&>(storage);
        in.sin6_family = AF_INET6;
        in.sin6_addr = in6addr_loopback;
        size = sizeof in;
    } else {
        auto& in = reinterpret_cast<sockaddr_in&>(storage);
        in.sin_family = AF_INET;
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        size = sizeof in;
    }
    auto* address = reinterpret_cast<sockaddr*>(&storage);
    int listener = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ends[0] = ends[1] = -1;
    bool good = listener >= 0 && bind(listener, address, size) == 0 && listen(listener, 1) == 0 &&
                getsockname(listener, address, &size) == 0;
    if (good) {
        ends[0] = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
        good = ends[0] >= 0 && connect(ends[0], address, size) == 0 &&
               (ends[1] = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;
    }
    if (listener >= 0) close(listener);
    if (!good) {
        if (ends[0] >= 0) close(ends[0]);
        return false;
    }
    return true;
}

// SCM_RIGHTS (fdinfo has their number since Linux 5.6).
void refuse_descriptors_on_their_way(int fd) {
    std::string count = field(read_proc("/proc/self/fdinfo/" + std::to_string(fd)), "scm_fds");
    if (!count.empty() && count != "0")
        fail(
            "descriptor {}: {} descriptors that were sent to this socket (SCM_RIGHTS) and not received yet "
            "cannot be "
            "saved: checkpoint again when they are",
            fd, count);
}

// Sent, and not yet in the queue of the other end, which is full.
void refuse_bytes_on_their_way(int fd) {
    int unsent = 0;
    for (int attempt = 0; attempt < 20; ++attempt) {
        if (ioctl(fd, SIOCOUTQ, &unsent) != 0 || unsent <= 0) return;
        usleep(5000);  // an acknowledgement may be on its way
    }
    fail(
        "descriptor {}: {} bytes sent by this socket to another of the process do not fit there until it is "
        "read: "
        "checkpoint again then",
        fd, unsent);
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

// A peer's end of writing is the peer's to make again; a Unix socket shows it at both ends.
void shut_again(int fd, const Json& saved) {
    int shut = saved.value("shut", 0);
    if ((shut & 1) != 0) shutdown(fd, SHUT_RD);
    if ((shut & 2) != 0) shutdown(fd, SHUT_WR);
}

// With the groups it listened to; its number is the new process's.
void bind_netlink(int fd, const Bytes& local) {
    sockaddr_nl address = {};
    std::memcpy(&address, local.data(), std::min(local.size(), sizeof address));
    address.nl_pid = 0;
    bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
}

// The address may still be another's for a moment: a process of the old job that ends.
bool bind_again(int fd, const sockaddr* address, socklen_t size) {
    for (int attempt = 0; attempt < 100; ++attempt) {
        if (bind(fd, address, size) == 0) return true;
        if (errno != EADDRINUSE) return false;
        usleep(20000);
    }
    return false;
}

}  // namespace

std::vector<Json> capture_sockets(const std::vector<SocketFd>& sockets, Lines& warnings) {
    std::vector<Json> values;
    std::vector<Bytes> local, remote;
    for (const SocketFd& one : sockets) {
        int domain = option(one.fd, SOL_SOCKET, SO_DOMAIN), type = option(one.fd, SOL_SOCKET, SO_TYPE);
        Json value = {{"fd", one.fd},
                      {"domain", domain},
                      {"type", type},
                      {"protocol", option(one.fd, SOL_SOCKET, SO_PROTOCOL)}};
        local.push_back(address_of(one.fd, false));
        // Every netlink socket has a peer: the kernel.
        remote.push_back(domain == AF_NETLINK ? Bytes{} : address_of(one.fd, true));
        value["local"] = Json::binary(local.back());
        value["remote"] = Json::binary(remote.back());
        value["listening"] = option(one.fd, SOL_SOCKET, SO_ACCEPTCONN) != 0;
        if (value["listening"].get<bool>()) {
            int backlog = 128;
            tcp_info info = {};
            socklen_t size = sizeof info;
            // For a listening socket the kernel puts the backlog there (net/ipv4/tcp.c, tcp_get_info).
            if (domain != AF_UNIX && getsockopt(one.fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
                info.tcpi_sacked > 0)
                backlog = static_cast<int>(info.tcpi_sacked);
            uint32_t waiting = info.tcpi_unacked;
            if (domain == AF_UNIX) {
                UnixFacts facts = ask_unix(one.inode);
                if (facts.backlog != 0) backlog = static_cast<int>(facts.backlog);
                waiting = facts.waiting;
            }
            value["backlog"] = backlog;
            if (waiting != 0)
                warnings.push_back("descriptor " + std::to_string(one.fd) + ": " + std::to_string(waiting) +
                                   " connections to " + text_of(local.back()) +
                                   " wait to be accepted: after a restart they are gone");
        }
        value["options"] = capture_options(one.fd, domain, type, value["protocol"], warnings);
        value["groups"] = capture_groups(one.fd, domain, warnings);
        refuse_descriptors_on_their_way(one.fd);
        value["pair"] = -1;
        values.push_back(std::move(value));
    }
    for (size_t i = 0; i < sockets.size(); ++i) {
        Json& value = values[i];
        int domain = value["domain"], type = value["type"];
        if (remote[i].empty()) continue;
        if (domain == AF_UNIX) {
            UnixFacts facts = ask_unix(sockets[i].inode);
            uint64_t peer = facts.peer;
            value["shut"] = facts.shut;
            for (size_t k = 0; k < sockets.size(); ++k)
                if (peer != 0 && sockets[k].inode == peer) value["pair"] = k;
        } else if (type == SOCK_STREAM) {
            for (size_t k = 0; k < sockets.size(); ++k)
                if (k != i && local[k] == remote[i] && remote[k] == local[i]) value["pair"] = k;
            value["shut"] = tcp_shut(sockets[i].fd);
            if (value["pair"] != -1) refuse_bytes_on_their_way(sockets[i].fd);
        }
        if (value["pair"] != -1 || (domain == AF_UNIX && type == SOCK_STREAM))
            value["waiting"] = waiting_in(sockets[i].fd, type);
        if (value["pair"] == -1 && type != SOCK_DGRAM)
            warnings.push_back("descriptor " + std::to_string(sockets[i].fd) + ": the connection to " +
                               text_of(remote[i]) +
                               " is not saved: after a restart it is closed by the peer");
    }
    for (size_t i = 0; i < sockets.size(); ++i) {
        int domain = values[i]["domain"];
        if (values[i]["type"] == SOCK_DGRAM && !values[i].contains("waiting"))
            if (std::string what = lost_messages(sockets[i].fd); !what.empty())
                warnings.push_back(
                    "descriptor " + std::to_string(sockets[i].fd) + ": " + what + " for " +
                    text_of(local[i]) +
                    " that the program has not received yet: after a restart they are gone, as the "
                    "network may lose them");
        if (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6)
            warnings.push_back("descriptor " + std::to_string(sockets[i].fd) + ": a socket of family " +
                               std::to_string(domain) + " comes back without its state");
    }
    return values;
}

int restore_socket(const std::vector<const Json*>& all, size_t i, std::vector<int>& ends, Lines& warnings) {
    if (ends[i] >= 0) {
        int fd = ends[i];
        ends[i] = -1;
        return fd;
    }
    const Json& saved = *all[i];
    int domain = saved.at("domain"), type = saved.at("type");
    std::string who = "descriptor " + std::to_string(saved.at("fd").get<int>());
    const auto& remote = saved.at("remote").get_binary();
    const auto& local = saved.at("local").get_binary();
    int pair = saved.at("pair");
    bool connected_away = pair < 0 && !remote.empty() && type != SOCK_DGRAM;
    if (pair >= 0 || connected_away) {
        int made[2];
        bool good = domain == AF_UNIX ? socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, made) == 0
                                      : tcp_pair(domain, made);
        if (!good) {
            warnings.push_back(who + ": its socket could not be made again: " + error_text(errno));
            return -1;
        }
        restore_options(made[0], saved.at("options"), who, warnings);
        if (saved.contains("waiting")) put_back(made[1], saved.at("waiting"), who);
        if (connected_away || static_cast<size_t>(pair) == i) {
            close(made[1]);
            return made[0];
        }
        const Json& other = *all[static_cast<size_t>(pair)];
        std::string its = "descriptor " + std::to_string(other.at("fd").get<int>());
        restore_options(made[1], other.at("options"), its, warnings);
        if (other.contains("waiting")) put_back(made[0], other.at("waiting"), its);
        shut_again(made[0], saved);
        shut_again(made[1], other);
        ends[static_cast<size_t>(pair)] = made[1];
        return made[0];
    }
    int fd = socket(domain, type | SOCK_CLOEXEC, saved.at("protocol"));
    if (fd < 0) {
        warnings.push_back(who + ": its socket could not be made again: " + error_text(errno));
        return -1;
    }
    restore_options(fd, saved.at("options"), who, warnings);
    restore_groups(fd, saved.at("groups"), who, warnings);
    const auto* address = reinterpret_cast<const sockaddr*>(local.data());
    bool bound = local.size() > sizeof(sa_family_t), port = false;
    if (bound && (domain == AF_INET || domain == AF_INET6)) {
        sockaddr_in in = {};
        std::memcpy(&in, local.data(),
                    std::min(local.size(), sizeof in));  // the port is at the same place in both
        bound = port = in.sin_port != 0;
    } else if (bound && domain == AF_UNIX && local[sizeof(sa_family_t)] != 0) {
        files::remove_socket(text_of(Bytes(local)));
    } else if (domain == AF_NETLINK) {
        return bind_netlink(fd, local), fd;
    } else if (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6) {
        bound = false;
    }
    // For bind() and listen(), which asks again: connections of the old socket may be in TIME_WAIT
    // (front/posix/listeners.cpp).
    int reuse = option(fd, SOL_SOCKET, SO_REUSEADDR), yes = 1;
    if (port) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bound && !bind_again(fd, address, static_cast<socklen_t>(local.size())))
        warnings.push_back(who + ": address " + text_of(Bytes(local)) +
                           " cannot be taken here: " + error_text(errno));
    else if (saved.at("listening").get<bool>() && listen(fd, saved.at("backlog")) != 0)
        warnings.push_back(who + ": cannot listen on " + text_of(Bytes(local)) +
                           " here: " + error_text(errno));
    else if (!remote.empty() && connect(fd, reinterpret_cast<const sockaddr*>(remote.data()),
                                        static_cast<socklen_t>(remote.size())) != 0)
        warnings.push_back(who + ": cannot reach " + text_of(Bytes(remote)) +
                           " from here: " + error_text(errno));
    if (port) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
    return fd;
}

}  // namespace fermata::split::process
