#include "split/process/descriptors/sockets.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "files/place.h"
#include "split/process/descriptors/restore.h"
#include "split/process/descriptors/socket_content.h"
#include "split/process/descriptors/socket_options.h"

namespace fermata::split::process::descriptors {
namespace {

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
    Fd listener(socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!listener || bind(listener.get(), address, size) != 0 || listen(listener.get(), 1) != 0 ||
        getsockname(listener.get(), address, &size) != 0)
        return false;
    Fd one(socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!one || connect(one.get(), address, size) != 0) return false;
    Fd other(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!other) return false;
    ends[0] = one.release();
    ends[1] = other.release();
    return true;
}

// A peer's end of writing is the peer's to make again; a Unix socket shows it at both ends.
void shut_again(int fd, const Json& saved) {
    int shut = saved.value("shut", 0);
    if ((shut & 1) != 0) shutdown(fd, SHUT_RD);
    if ((shut & 2) != 0) shutdown(fd, SHUT_WR);
}

// With the groups it listened to; its number is the new process's.
void bind_netlink(int fd, const Address& local) {
    sockaddr_nl address = {};
    std::memcpy(&address, local.data(), std::min(local.size(), sizeof address));
    address.nl_pid = 0;
    // That such a socket comes back without its state has been said, whatever comes of this.
    static_cast<void>(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address));
}

// The address may still be another's for a moment: a process of the old job that ends.
bool bind_again(int fd, const Address& local) {
    for (int attempt = 0; attempt < 100; ++attempt) {
        if (bind(fd, reinterpret_cast<const sockaddr*>(local.data()), static_cast<socklen_t>(local.size())) ==
            0)
            return true;
        if (errno != EADDRINUSE) return false;
        usleep(20000);
    }
    return false;
}

bool has_port(int domain, const Address& local) {
    if (domain != AF_INET && domain != AF_INET6) return false;
    sockaddr_in in = {};
    std::memcpy(&in, local.data(),
                std::min(local.size(), sizeof in));  // the port is at the same place in both
    return in.sin_port != 0;
}

bool is_path(const Address& local) {
    return local.size() > sizeof(sa_family_t) && local[sizeof(sa_family_t)] != 0;
}

// Address, backlog and peer as they were; what cannot be had is a line.
void name_again(int fd, const Json& saved, const std::string& who, Lines& warnings) {
    int domain = saved.at("domain");
    const Address &local = saved.at("local").get_binary(), &remote = saved.at("remote").get_binary();
    if (domain == AF_NETLINK) return bind_netlink(fd, local);
    bool port = local.size() > sizeof(sa_family_t) && has_port(domain, local);
    bool bound = port || (domain == AF_UNIX && local.size() > sizeof(sa_family_t));
    if (domain == AF_UNIX && is_path(local)) files::remove_socket(text_of(local));
    // For bind() and listen(), which asks again: connections of the old socket may be in TIME_WAIT
    // (front/posix/listeners.cpp).
    int reuse = option(fd, SOL_SOCKET, SO_REUSEADDR), yes = 1;
    if (port) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bound && !bind_again(fd, local))
        warnings.push_back(who + ": address " + text_of(local) +
                           " cannot be taken here: " + error_text(errno));
    else if (saved.at("listening").get<bool>() && listen(fd, saved.at("backlog")) != 0)
        warnings.push_back(who + ": cannot listen on " + text_of(local) + " here: " + error_text(errno));
    else if (!remote.empty() && connect(fd, reinterpret_cast<const sockaddr*>(remote.data()),
                                        static_cast<socklen_t>(remote.size())) != 0)
        warnings.push_back(who + ": cannot reach " + text_of(remote) + " from here: " + error_text(errno));
    if (port) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
}

Fd not_made(const std::string& who, Lines& warnings) {
    warnings.push_back(who + ": its socket could not be made again: " + error_text(errno));
    return {};
}

}  // namespace

void Sockets::add(const Description& one) {
    const Json& saved = one.saved.at("socket");
    all_.push_back({saved, one.index, "descriptor " + std::to_string(saved.at("fd").get<int>()), {}});
}

Fd Sockets::make_pair(Socket& one, Restore& restore) {
    int domain = one.saved.at("domain"), type = one.saved.at("type"), pair = one.saved.at("pair"), ends[2];
    bool good =
        domain == AF_UNIX ? socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) == 0 : tcp_pair(domain, ends);
    if (!good) return not_made(one.who, restore.warnings);
    Fd mine(ends[0]), its(ends[1]);
    restore_options(mine.get(), one.saved.at("options"), one.who, restore.warnings);
    if (one.saved.contains("waiting")) put_back(its.get(), one.saved.at("waiting"), one.who);
    if (pair < 0 || &all_.at(static_cast<size_t>(pair)) == &one) return mine;
    Socket& other = all_[static_cast<size_t>(pair)];
    restore_options(its.get(), other.saved.at("options"), other.who, restore.warnings);
    if (other.saved.contains("waiting")) put_back(mine.get(), other.saved.at("waiting"), other.who);
    shut_again(mine.get(), one.saved);
    shut_again(its.get(), other.saved);
    other.made = restore.up(std::move(its));
    return mine;
}

Fd Sockets::make(const Description& description, Restore& restore) {
    auto found = std::find_if(all_.begin(), all_.end(),
                              [&](const Socket& one) { return one.description == description.index; });
    Socket& one = *found;
    if (one.made) return std::move(one.made);
    bool connected = !one.saved.at("remote").get_binary().empty();
    if (one.saved.at("pair").get<int>() >= 0 || (connected && one.saved.at("type") != SOCK_DGRAM))
        return make_pair(one, restore);
    Fd fd(socket(one.saved.at("domain"), one.saved.at("type").get<int>() | SOCK_CLOEXEC,
                 one.saved.at("protocol")));
    if (!fd) return not_made(one.who, restore.warnings);
    restore_options(fd.get(), one.saved.at("options"), one.who, restore.warnings);
    restore_groups(fd.get(), one.saved.at("groups"), one.who, restore.warnings);
    name_again(fd.get(), one.saved, one.who, restore.warnings);
    return fd;
}

namespace {

bool is(const Entry& entry) { return entry.is(S_IFSOCK); }

// "socket" comes when all are known.
Json capture(Capture&, const Entry&) { return Json::object(); }

Fd make(Restore& restore, const Description& one) {
    Fd fd = restore.sockets.make(one, restore);
    return fd ? std::move(fd) : Restore::placeholder();
}

}  // namespace

const Operations kSocket = {.kind = Kind::socket,
                            .is = is,
                            .capture = capture,
                            .relate = capture_sockets,
                            .make = make,
                            .sets_flags = true};

}  // namespace fermata::split::process::descriptors
