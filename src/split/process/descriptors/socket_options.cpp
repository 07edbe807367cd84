// Options of sockets: every one of the table whose value is not that of a fresh socket of the same kind is
// saved as the kernel gives it, set again and compared.
#include "split/process/descriptors/socket_options.h"

#include <fmt/core.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fd.h"

namespace fermata::split::process::descriptors {
namespace {

using Bytes = std::vector<uint8_t>;

struct Option {
    int level, name;
    const char* text;
};
#define FERMATA_OPTION(level, name) \
    { level, name, #name }
constexpr Option kOptions[] = {
    FERMATA_OPTION(SOL_SOCKET, SO_REUSEADDR),
    FERMATA_OPTION(SOL_SOCKET, SO_REUSEPORT),
    FERMATA_OPTION(SOL_SOCKET, SO_KEEPALIVE),
    FERMATA_OPTION(SOL_SOCKET, SO_BROADCAST),
    FERMATA_OPTION(SOL_SOCKET, SO_OOBINLINE),
    FERMATA_OPTION(SOL_SOCKET, SO_PASSCRED),
    FERMATA_OPTION(SOL_SOCKET, SO_PASSSEC),
    FERMATA_OPTION(SOL_SOCKET, SO_RCVTIMEO),
    FERMATA_OPTION(SOL_SOCKET, SO_SNDTIMEO),
    FERMATA_OPTION(SOL_SOCKET, SO_LINGER),
    FERMATA_OPTION(SOL_SOCKET, SO_RCVLOWAT),
    FERMATA_OPTION(SOL_SOCKET, SO_PRIORITY),
    FERMATA_OPTION(SOL_SOCKET, SO_MARK),
    FERMATA_OPTION(SOL_SOCKET, SO_DONTROUTE),
    FERMATA_OPTION(SOL_SOCKET, SO_TIMESTAMP),
    FERMATA_OPTION(SOL_SOCKET, SO_TIMESTAMPNS),
    FERMATA_OPTION(SOL_SOCKET, SO_TIMESTAMPING),
    FERMATA_OPTION(SOL_SOCKET, SO_RXQ_OVFL),
    FERMATA_OPTION(SOL_SOCKET, SO_NO_CHECK),
    FERMATA_OPTION(SOL_SOCKET, SO_BUSY_POLL),
    FERMATA_OPTION(SOL_SOCKET, SO_ZEROCOPY),
    FERMATA_OPTION(SOL_SOCKET, SO_MAX_PACING_RATE),
    FERMATA_OPTION(SOL_SOCKET, SO_SELECT_ERR_QUEUE),
    FERMATA_OPTION(SOL_SOCKET, SO_BINDTODEVICE),
    FERMATA_OPTION(IPPROTO_IP, IP_TOS),
    FERMATA_OPTION(IPPROTO_IP, IP_TTL),
    FERMATA_OPTION(IPPROTO_IP, IP_PKTINFO),
    FERMATA_OPTION(IPPROTO_IP, IP_RECVTOS),
    FERMATA_OPTION(IPPROTO_IP, IP_RECVTTL),
    FERMATA_OPTION(IPPROTO_IP, IP_RECVERR),
    FERMATA_OPTION(IPPROTO_IP, IP_RECVOPTS),
    FERMATA_OPTION(IPPROTO_IP, IP_RECVORIGDSTADDR),
    FERMATA_OPTION(IPPROTO_IP, IP_MTU_DISCOVER),
    FERMATA_OPTION(IPPROTO_IP, IP_FREEBIND),
    FERMATA_OPTION(IPPROTO_IP, IP_TRANSPARENT),
    FERMATA_OPTION(IPPROTO_IP, IP_MINTTL),
    FERMATA_OPTION(IPPROTO_IP, IP_MULTICAST_TTL),
    FERMATA_OPTION(IPPROTO_IP, IP_MULTICAST_LOOP),
    FERMATA_OPTION(IPPROTO_IP, IP_MULTICAST_IF),
    FERMATA_OPTION(IPPROTO_IP, IP_MULTICAST_ALL),
    FERMATA_OPTION(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT),
    FERMATA_OPTION(IPPROTO_IPV6, IPV6_V6ONLY),
    FERMATA_OPTION(IPPROTO_IPV6, IPV6_TCLASS),
    FERMATA_OPTION(IPPROTO_IPV6, IPV6_UNICAST_HOPS),
    FERMATA_OPTION(IPPROTO_IPV6, IPV6_MULTICAST_HOPS),
    FERMATA_OPTION(IPPROTO_IPV6, IPV6_MULTICAST_LOOP),
    FERMATA_OPTION(IPPROTO_IPV6, IPV6_MULTICAST_IF),
    FERMATA_OPTION(IPPROTO_IPV6, IPV6_RECVPKTINFO),
    FERMATA_OPTION(IPPROTO_IPV6, IPV6_RECVHOPLIMIT),
    FERMATA_OPTION(IPPROTO_IPV6, IPV6_RECVTCLASS),
    FERMATA_OPTION(IPPROTO_IPV6, IPV6_RECVERR),
    FERMATA_OPTION(IPPROTO_IPV6, IPV6_MTU_DISCOVER),
    FERMATA_OPTION(IPPROTO_TCP, TCP_NODELAY),
    FERMATA_OPTION(IPPROTO_TCP, TCP_CORK),
    FERMATA_OPTION(IPPROTO_TCP, TCP_KEEPIDLE),
    FERMATA_OPTION(IPPROTO_TCP, TCP_KEEPINTVL),
    FERMATA_OPTION(IPPROTO_TCP, TCP_KEEPCNT),
    FERMATA_OPTION(IPPROTO_TCP, TCP_SYNCNT),
    FERMATA_OPTION(IPPROTO_TCP, TCP_LINGER2),
    FERMATA_OPTION(IPPROTO_TCP, TCP_DEFER_ACCEPT),
    FERMATA_OPTION(IPPROTO_TCP, TCP_USER_TIMEOUT),
    FERMATA_OPTION(IPPROTO_TCP, TCP_CONGESTION),
    FERMATA_OPTION(IPPROTO_TCP, TCP_NOTSENT_LOWAT),
    FERMATA_OPTION(IPPROTO_TCP, TCP_FASTOPEN),
    FERMATA_OPTION(IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS),
    FERMATA_OPTION(IPPROTO_UDP, UDP_CORK),
    FERMATA_OPTION(IPPROTO_UDP, UDP_SEGMENT),
    FERMATA_OPTION(IPPROTO_UDP, UDP_GRO),
    FERMATA_OPTION(IPPROTO_UDP, UDP_NO_CHECK6_TX),
    FERMATA_OPTION(IPPROTO_UDP, UDP_NO_CHECK6_RX),
};
#undef FERMATA_OPTION

bool applies(const Option& option, int domain, int type) {
    int level = option.level;
    bool internet = domain == AF_INET || domain == AF_INET6;
    // An accepted connection has the peer's TTL there, and takes none.
    if (type == SOCK_STREAM && std::strstr(option.text, "MULTICAST") != nullptr) return false;
    if (level == IPPROTO_TCP) return internet && type == SOCK_STREAM;
    if (level == IPPROTO_UDP) return internet && type == SOCK_DGRAM;
    if (level == IPPROTO_IP) return internet;
    if (level == IPPROTO_IPV6) return domain == AF_INET6;
    return true;
}

// Nothing: the kernel does not have the option, or not here.
Bytes value_of(int fd, int level, int name) {
    Bytes bytes(128);
    auto size = static_cast<socklen_t>(bytes.size());
    if (getsockopt(fd, level, name, bytes.data(), &size) != 0) size = 0;
    bytes.resize(size);
    return bytes;
}

int number_of(int fd, int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(fd, level, name, &value, &size) == 0 ? value : 0;
}

// Sizes of buffers are doubled by the kernel when they are set, and follow the traffic when they are not.
constexpr struct {
    int name, forced, lock;
    const char* text;
} kBuffers[] = {{SO_SNDBUF, SO_SNDBUFFORCE, 1, "SO_SNDBUF"}, {SO_RCVBUF, SO_RCVBUFFORCE, 2, "SO_RCVBUF"}};

}  // namespace

Json capture_options(int fd, int domain, int type, int protocol, Lines& warnings) {
    Json options = Json::array(), buffers = Json::array();
    Fd fresh(socket(domain, type | SOCK_CLOEXEC, protocol));
    for (const Option& one : kOptions) {
        if (!applies(one, domain, type)) continue;
        Bytes value = value_of(fd, one.level, one.name);
        if (!value.empty() && fresh && value != value_of(fresh.get(), one.level, one.name))
            options.push_back({one.level, one.name, Json::binary(std::move(value))});
    }
    int locked = number_of(fd, SOL_SOCKET, SO_BUF_LOCK);
    for (auto& one : kBuffers)
        if ((locked & one.lock) != 0) buffers.push_back({one.name, number_of(fd, SOL_SOCKET, one.name) / 2});
    socklen_t size = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, nullptr, &size) == 0 && size > 0)
        warnings.push_back(fmt::format(
            "descriptor {}: the socket has a filter (SO_ATTACH_FILTER): after a restart it has none", fd));
    return {{"set", options}, {"buffers", buffers}};
}

void restore_options(int fd, const Json& saved, const std::string& who, Lines& warnings) {
    for (const Json& one : saved.at("set")) {
        int level = one.at(0), name = one.at(1);
        const Bytes& value = one.at(2).get_binary();
        int result = setsockopt(fd, level, name, value.data(), static_cast<socklen_t>(value.size()));
        if (result == 0 && value_of(fd, level, name) == value) continue;
        const char* text = "?";
        for (const Option& known : kOptions)
            if (known.level == level && known.name == name) text = known.text;
        warnings.push_back(fmt::format("{}: the socket's {} cannot be set as it was{}", who, text,
                                       result != 0 ? ": " + error_text(errno) : std::string()));
    }
    for (const Json& one : saved.at("buffers"))
        for (auto& buffer : kBuffers) {
            int size = one.at(1);
            if (one.at(0) != buffer.name) continue;
            if (setsockopt(fd, SOL_SOCKET, buffer.forced, &size, sizeof size) != 0)
                setsockopt(fd, SOL_SOCKET, buffer.name, &size, sizeof size);
            if (number_of(fd, SOL_SOCKET, buffer.name) != size * 2)
                warnings.push_back(fmt::format("{}: the socket's {} is {} here, {} at the checkpoint", who,
                                               buffer.text, number_of(fd, SOL_SOCKET, buffer.name),
                                               size * 2));
        }
}

}  // namespace fermata::split::process::descriptors
