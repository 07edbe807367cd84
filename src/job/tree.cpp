#include "job/tree.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/log.h"
#include "job/local_socket.h"
#include "job/root_address.h"

namespace fermata::job {
namespace {

constexpr int kGuestMs = 10000;  // for the handshake
constexpr size_t kMaxGuests = 4096;

// IPv6 socket that also takes IPv4; plain IPv4 where the kernel has no IPv6.
Fd listen_tcp(uint16_t& port) {
    for (int family : {AF_INET6, AF_INET}) {
        Fd sock(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (!sock) continue;
        sockaddr_storage where{};
        socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
        where.ss_family = static_cast<sa_family_t>(family);
        if (family == AF_INET6) {
            int off = 0;
            ::setsockopt(sock.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        }
        if (::bind(sock.get(), reinterpret_cast<sockaddr*>(&where), size) != 0 ||
            ::listen(sock.get(), 1024) != 0)
            continue;
        size = sizeof where;
        ::getsockname(sock.get(), reinterpret_cast<sockaddr*>(&where), &size);
        port = ntohs(family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(where).sin6_port
                                        : reinterpret_cast<sockaddr_in&>(where).sin_port);
        return sock;
    }
    fail_errno("cannot listen for the node daemons");
}

}  // namespace

Tree::Tree(const wire::Key& key) : key_(key), listener_(listen_tcp(port_)) {}

void Tree::add_to(std::vector<pollfd>& fds) {
    fds.push_back({listener_.get(), POLLIN, 0});
    polled_guests_ = guests_.size();
    for (auto& guest : guests_) fds.push_back({guest->socket.get(), POLLIN, 0});
    polled_.clear();
    for (auto& [node, channel] : channels_) {
        polled_.push_back(node);
        fds.push_back({channel.fd(), channel.events(), 0});
    }
}

void Tree::serve(const std::vector<pollfd>& fds, size_t first) {
    size_t at = first + 1 + polled_guests_;
    for (int node : polled_) {
        auto found = channels_.find(node);
        short revents = fds[at++].revents;
        if (found == channels_.end()) continue;
        found->second.serve(revents);
        while (auto message = found->second.receive()) {
            if (auto* hello = std::get_if<wire::NodeHello>(&*message)) {
                nodes_[node].host = hello->host;
                nodes_[node].pid = hello->pid;
            } else if (std::get_if<wire::Spare>(&*message)) {
                nodes_[node].spare = true;
            } else {
                on_message(node, *message);
            }
        }
        if (!found->second.closed()) continue;
        if (!found->second.error().empty())
            spdlog::warn("node {}: {}", nodes_[node].host, found->second.error());
        NodeInfo info = nodes_[node];
        channels_.erase(found);
        nodes_.erase(node);
        on_lost(node, info);
    }
    for (size_t i = polled_guests_; i-- > 0;) {
        bool stays = !fds[first + 1 + i].revents || serve_guest(*guests_[i]);
        if (!stays || now_ms() - guests_[i]->since > kGuestMs)
            guests_.erase(guests_.begin() + static_cast<ptrdiff_t>(i));
    }
    while (fds[first].revents) {
        Fd sock(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!sock) break;
        if (guests_.size() >= kMaxGuests) continue;
        tune_tcp(sock.get());
        guests_.push_back(std::make_unique<Guest>(
            Guest{std::move(sock), wire::Handshake(wire::Role::root, key_), now_ms()}));
    }
}

// False when the guest is to be forgotten: refused, or moved to the nodes.
bool Tree::serve_guest(Guest& guest) {
    char buffer[4096];
    ssize_t n = ::recv(guest.socket.get(), buffer, sizeof buffer, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n <= 0) return false;
    std::string answer = guest.shake.feed(buffer, static_cast<size_t>(n));
    if (guest.shake.failed()) {
        spdlog::warn("a connection is refused: {}", guest.shake.error());
        return false;
    }
    // Less than one packet into an empty socket buffer: never partial.
    if (!answer.empty() && ::send(guest.socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL) !=
                               static_cast<ssize_t>(answer.size()))
        return false;
    if (!guest.shake.done()) return true;
    int node = next_node_++;
    Channel channel(std::move(guest.socket), wire::kMaxPayload, guest.shake.outgoing(),
                    guest.shake.incoming());
    channel.feed(guest.shake.rest());
    channels_.emplace(node, std::move(channel));
    nodes_[node] = {};
    return false;
}

void Tree::broadcast(const wire::Message& message) {
    for (auto& [node, channel] : channels_) channel.send(message);
}

void Tree::send(int node, const wire::Message& message) {
    auto found = channels_.find(node);
    if (found != channels_.end()) found->second.send(message);
}

void Tree::flush(int ms) {
    for (auto& [node, channel] : channels_) channel.flush(ms);
}

}  // namespace fermata::job
