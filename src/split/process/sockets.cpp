// Sockets: pairs within the process come back connected, with what waits in them; listening and unconnected
// ones are made again; a connection to somebody else reads as closed by the peer.
//
// Limits: file descriptors in flight (SCM_RIGHTS) and data that the sender's side still holds are not saved;
// a TCP connection within the process comes back with other port numbers.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "split/process/parts.h"

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

// The inode of a Unix socket's peer, by the kernel's socket diagnosis; 0 = unknown.
uint64_t unix_peer(uint64_t inode) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0) return 0;
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
    query.request.udiag_show = UDIAG_SHOW_PEER;
    query.request.udiag_cookie[0] = query.request.udiag_cookie[1] = ~0u;
    alignas(nlmsghdr) char answer[4096];
    timeval limit = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    uint64_t peer = 0;
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
            if (type == UNIX_DIAG_PEER && length >= 8) {
                uint32_t value;
                std::memcpy(&value, at + 4, 4);
                peer = value;
            }
            at += (length + 3u) & ~3u;
        }
    }
    close(fd);
    return peer;
}

// What waits to be read, message by message (one for streams), without taking it out.
Json waiting_in(int fd, int type) {
    Json messages = Json::array();
    bool stream = type == SOCK_STREAM;
    int offset = 0;
    if (!stream && setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset) != 0) return messages;
    Bytes buffer(stream ? std::max(option(fd, SOL_SOCKET, SO_RCVBUF), 1 << 20) : 1 << 20);
    for (int count = 0; count < 100000; ++count) {
        ssize_t got = recv(fd, buffer.data(), buffer.size(), MSG_PEEK | MSG_DONTWAIT);
        if (got < 0 || (stream && got == 0)) break;
        messages.push_back(Json::binary(Bytes(buffer.begin(), buffer.begin() + got)));
        if (stream) break;
    }
    if (!stream) {
        offset = -1;
        setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset);
    }
    return messages;
}

constexpr struct {
    int level, name;
} kOptions[] = {
    {SOL_SOCKET, SO_REUSEADDR}, {SOL_SOCKET, SO_REUSEPORT},  {SOL_SOCKET, SO_KEEPALIVE},
    {SOL_SOCKET, SO_BROADCAST}, {SOL_SOCKET, SO_OOBINLINE},  {SOL_SOCKET, SO_PASSCRED},
    {IPPROTO_TCP, TCP_NODELAY}, {IPPROTO_IPV6, IPV6_V6ONLY},
};

bool option_applies(int level, int domain, int type) {
    if (level == IPPROTO_TCP) return (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM;
    if (level == IPPROTO_IPV6) return domain == AF_INET6;
    return true;
}

void set_options(int fd, const Json& saved) {
    for (const Json& one : saved.at("options")) {
        int value = one.at(2);
        setsockopt(fd, one.at(0), one.at(1), &value, sizeof value);
    }
}

void put_back(int sender, const Json& messages) {
    for (const Json& message : messages) {
        const auto& bytes = message.get_binary();
        for (size_t done = 0;;) {
            ssize_t sent =
                send(sender, bytes.data() + done, bytes.size() - done, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (sent < 0) return;
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
        remote.push_back(address_of(one.fd, true));
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
            value["backlog"] = backlog;
        }
        Json options = Json::array();
        for (auto [level, name] : kOptions)
            if (option_applies(level, domain, type))
                if (int set = option(one.fd, level, name); set != 0) options.push_back({level, name, set});
        value["options"] = options;
        value["pair"] = -1;
        values.push_back(std::move(value));
    }
    for (size_t i = 0; i < sockets.size(); ++i) {
        Json& value = values[i];
        int domain = value["domain"], type = value["type"];
        if (remote[i].empty()) continue;
        if (domain == AF_UNIX) {
            uint64_t peer = unix_peer(sockets[i].inode);
            for (size_t k = 0; k < sockets.size(); ++k)
                if (peer != 0 && sockets[k].inode == peer) value["pair"] = k;
        } else if (type == SOCK_STREAM) {
            for (size_t k = 0; k < sockets.size(); ++k)
                if (k != i && local[k] == remote[i] && remote[k] == local[i]) value["pair"] = k;
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
        set_options(made[0], saved);
        if (saved.contains("waiting")) put_back(made[1], saved.at("waiting"));
        if (connected_away || static_cast<size_t>(pair) == i) {
            close(made[1]);
            return made[0];
        }
        const Json& other = *all[static_cast<size_t>(pair)];
        set_options(made[1], other);
        if (other.contains("waiting")) put_back(made[0], other.at("waiting"));
        ends[static_cast<size_t>(pair)] = made[1];
        return made[0];
    }
    int fd = socket(domain, type | SOCK_CLOEXEC, saved.at("protocol"));
    if (fd < 0) {
        warnings.push_back(who + ": its socket could not be made again: " + error_text(errno));
        return -1;
    }
    set_options(fd, saved);
    const auto* address = reinterpret_cast<const sockaddr*>(local.data());
    bool bound = local.size() > sizeof(sa_family_t);
    if (bound && (domain == AF_INET || domain == AF_INET6)) {
        sockaddr_in in = {};
        std::memcpy(&in, local.data(),
                    std::min(local.size(), sizeof in));  // the port is at the same place in both
        bound = in.sin_port != 0;
        int yes = 1;  // ours may still be in TIME_WAIT
        if (bound) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    } else if (bound && domain == AF_UNIX && local[sizeof(sa_family_t)] != 0) {
        sockaddr_un un = {};
        std::memcpy(&un, local.data(), std::min(local.size(), sizeof un));
        struct stat there;
        if (stat(un.sun_path, &there) == 0 && S_ISSOCK(there.st_mode)) unlink(un.sun_path);
    } else if (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6) {
        bound = false;
    }
    if (bound && bind(fd, address, static_cast<socklen_t>(local.size())) != 0)
        warnings.push_back(who + ": address " + text_of(Bytes(local)) +
                           " cannot be taken here: " + error_text(errno));
    else if (saved.at("listening").get<bool>() && listen(fd, saved.at("backlog")) != 0)
        warnings.push_back(who + ": cannot listen on " + text_of(Bytes(local)) +
                           " here: " + error_text(errno));
    else if (!remote.empty() && connect(fd, reinterpret_cast<const sockaddr*>(remote.data()),
                                        static_cast<socklen_t>(remote.size())) != 0)
        warnings.push_back(who + ": cannot reach " + text_of(Bytes(remote)) +
                           " from here: " + error_text(errno));
    return fd;
}

}  // namespace fermata::split::process
