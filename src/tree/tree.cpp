#include "tree/tree.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"

namespace fermata::tree {
namespace {

constexpr int kBacklog = 4096;  // the kernel's limit, mostly
// What a node may say at once: until it has said who it is, then of itself, and of each of its ranks.
constexpr uint32_t kStrangerPayload = 4096, kNodePayload = 1u << 20, kRankPayload = 16384;

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
            ::listen(sock.get(), kBacklog) != 0)
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

Tree::Tree(const wire::Key& key) : guests_(listen_tcp(port_), key) {
    guests_.on_proof = [this](Fd socket, const wire::Handshake& shake) { admit(std::move(socket), shake); };
}

void Tree::add_to(std::vector<pollfd>& fds) {
    polled_.clear();
    for (auto& [node, channel] : channels_) {
        polled_.push_back(node);
        fds.push_back({channel.fd(), channel.events(), 0});
    }
    guests_.add_to(fds);
}

void Tree::serve(const std::vector<pollfd>& fds, size_t first) {
    size_t at = first;
    for (int node : polled_) {
        auto found = channels_.find(node);
        short revents = fds[at++].revents;
        if (found == channels_.end()) continue;
        found->second.serve(revents);
        while (auto message = found->second.receive()) {
            if (auto* hello = std::get_if<wire::NodeHello>(&*message)) {
                nodes_[node].host = hello->host;
                nodes_[node].pid = hello->pid;
                found->second.allow(kNodePayload);
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
    guests_.serve(fds, at);
}

void Tree::admit(Fd socket, const wire::Handshake& shake) {
    if (channels_.size() >= most_nodes_) {
        spdlog::warn("a node daemon too many: there are {}", channels_.size());
        return;
    }
    int node = next_node_++;
    Channel channel(std::move(socket), kStrangerPayload, shake.outgoing(), shake.incoming());
    channel.feed(shake.rest());
    channels_.emplace(node, std::move(channel));
    nodes_[node] = {};
}

void Tree::expect(int node, size_t ranks) {
    auto found = channels_.find(node);
    uint64_t room = kNodePayload + uint64_t{ranks} * kRankPayload;
    if (found != channels_.end())
        found->second.allow(static_cast<uint32_t>(std::min<uint64_t>(room, wire::kMaxPayload)));
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

}  // namespace fermata::tree
