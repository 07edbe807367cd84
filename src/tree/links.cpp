#include "tree/links.h"

#include <algorithm>

#include "base/invariant.h"
#include "base/log.h"
#include "tree/listen.h"

namespace fermata::tree {
namespace {

constexpr uint32_t kStrangerPayload = 4096;  // of a daemon that has not said who it is

}  // namespace

Links::Links(const wire::Key& key) : guests_(listen_tcp(port_), key) {
    guests_.on_proof = [this](Fd socket, const wire::Handshake& shake) { admit(std::move(socket), shake); };
}

void Links::admit(Fd socket, const wire::Handshake& shake) {
    if (links_.size() >= most_) return spdlog::warn("a node daemon too many: there are {}", links_.size());
    Channel channel(std::move(socket), kStrangerPayload, shake.outgoing(), shake.incoming());
    channel.feed(shake.rest());
    fed_ = fed_ || !shake.rest().empty();
    links_.emplace(next_++, Link{std::move(channel), Pulse(now_ms())});
}

void Links::add_to(std::vector<pollfd>& fds) {
    polled_.clear();
    for (auto& [number, link] : links_) {
        polled_.push_back(number);
        fds.push_back({link.channel.fd(), link.channel.events(), 0});
    }
    guests_.add_to(fds);
}

void Links::serve(const std::vector<pollfd>& fds, size_t first) {
    always(first + polled_.size() <= fds.size(), "connections that were not polled");
    size_t at = first;
    const int64_t now = now_ms();
    fed_ = false;
    if (awake_.stood_still(rhythm_, now))
        for (auto& [number, link] : links_) link.pulse.heard(now);
    for (int number : polled_) {
        auto found = links_.find(number);
        short revents = fds[at++].revents;
        if (found == links_.end()) continue;
        found->second.channel.serve(revents);
        // A handler may close links.
        while (found != links_.end()) {
            auto message = found->second.channel.receive();
            if (!message) break;
            found->second.pulse.heard(now);
            if (!std::holds_alternative<wire::Beat>(*message)) on_message(number, *message);
            found = links_.find(number);
        }
        if (found == links_.end()) continue;
        Channel& channel = found->second.channel;
        bool silent = found->second.pulse.lost(rhythm_, now);
        if (!channel.closed() && !silent) continue;
        if (!channel.error().empty()) spdlog::warn("a node daemon: {}", channel.error());
        End how = !channel.closed() ? End::silent : channel.peer_has_ended() ? End::closed : End::broken;
        close(number);
        on_closed(number, how);
    }
    beat();
    guests_.serve(fds, at);
}

void Links::beat() {
    const int64_t now = now_ms();
    for (auto& [number, link] : links_) {
        if (!link.pulse.due(rhythm_, now)) continue;
        link.channel.send(wire::Beat{});
        link.pulse.said(now);
    }
}

int Links::rest(int otherwise) const {
    if (fed_) return 0;
    if (!links_.empty()) otherwise = std::min(otherwise, static_cast<int>(rhythm_.beat_ms / 2));
    return guests_.rest(otherwise);
}

void Links::send(int number, const wire::Message& message) {
    auto found = links_.find(number);
    if (found == links_.end()) return;
    found->second.channel.send(message);
    found->second.pulse.said(now_ms());
}

void Links::put(int number, const wire::Message& message) {
    auto found = links_.find(number);
    if (found == links_.end()) return;
    found->second.channel.put(message);
    found->second.pulse.said(now_ms());
}

void Links::close(int number) {
    auto found = links_.find(number);
    if (found == links_.end()) return;
    ended_ += found->second.channel.traffic();
    links_.erase(found);
}

Traffic Links::traffic() const {
    Traffic all = ended_;
    for (auto& [number, link] : links_) all += link.channel.traffic();
    return all;
}

void Links::allow(int number, uint32_t max_payload) {
    auto found = links_.find(number);
    if (found != links_.end()) found->second.channel.allow(max_payload);
}

void Links::flush(int ms) {
    for (auto& [number, link] : links_) link.channel.flush(ms);
}

}  // namespace fermata::tree
