#include "noded/uplink.h"

#include <algorithm>

#include "base/invariant.h"
#include "base/log.h"

namespace fermata::noded {
namespace {

constexpr int64_t kHopHeadStartMs = 2000;  // of a parent before the next one: it may be busy
constexpr int kFirstPauseMs = 20, kLongestPauseMs = 500;
constexpr int kRoot = -1;
constexpr int64_t kBusyMs = 600'000;  // of a root that lets in and says nothing

}  // namespace

Uplink::Uplink(tree::Channel root, const wire::Key& key, std::string root_addresses)
    : key_(key),
      root_addresses_(std::move(root_addresses)),
      channel_(std::move(root)),
      pulse_(tree::now_ms()) {}

void Uplink::follow(const wire::Parent& parent) {
    rhythm_ = {parent.beat_ms, parent.silent_ms};
    way_ = parent.way;
    pulse_ = tree::Pulse(tree::now_ms());
    moving_ = !way_.empty();
    if (moving_) connect();
}

// The connection to the root stays until there is another one.
void Uplink::connect() {
    std::vector<tree::Connecting::Target> targets;
    const std::string here = tree::this_place();
    auto add = [&](const std::string& addresses, int node) {
        for (const tree::Address& address : tree::parse_addresses(addresses, here))
            targets.push_back({address, tree::kHeadStartMs, node});
        if (!targets.empty()) targets.back().head_start_ms = kHopHeadStartMs;
    };
    for (const wire::Hop& hop : way_) add(hop.addresses, hop.node);
    add(root_addresses_, kRoot);
    connecting_.emplace(std::move(targets), key_);
}

void Uplink::connected(tree::Channel channel) {
    always(connecting_.has_value(), "a connection that nobody has asked for");
    to_root_ = connecting_->tag() == kRoot;
    connecting_.reset();
    moving_ = false;
    channel_ = std::move(channel);
    pulse_ = tree::Pulse(tree::now_ms());
    lost_since_ = 0;
    pause_ms_ = 0;
    on_connected();
}

void Uplink::lose() {
    spdlog::info("the connection to the {} has ended", to_root_ ? "root" : "parent");
    always(channel_.has_value(), "a connection that is lost twice");
    channel_.reset();
    if (lost_since_ == 0) lost_since_ = lost_at_ = tree::now_ms();
    on_lost();
}

void Uplink::add_to(std::vector<pollfd>& fds) {
    fds.push_back({channel_ ? channel_->fd() : -1, channel_ ? channel_->events() : short{0}, 0});
    if ((!channel_ || moving_) && !connecting_ && tree::now_ms() >= next_try_) connect();
    size_t before = fds.size();
    if (connecting_) connecting_->add_to(fds);
    polled_ = fds.size() - before;
}

void Uplink::serve(const std::vector<pollfd>& fds, size_t first) {
    always(first + 1 + polled_ <= fds.size(), "connections that were not polled");
    if (channel_) {
        channel_->serve(fds[first].revents);
        while (channel_) {
            auto message = channel_->receive();
            if (!message) break;
            pulse_.heard(tree::now_ms());
            if (!std::holds_alternative<wire::Beat>(*message)) on_message(*message);
        }
    }
    if (connecting_ && polled_ > 0) {
        if (auto channel = connecting_->serve(fds, first + 1)) {
            connected(std::move(*channel));
        } else if (connecting_->failed()) {
            connecting_.reset();
            pause_ms_ = std::clamp(2 * pause_ms_, kFirstPauseMs, kLongestPauseMs);
            next_try_ = tree::now_ms() + pause_ms_ / 2 +
                        static_cast<int>(random_() % static_cast<unsigned>(pause_ms_));
        }
    }
    watch(tree::now_ms());
}

// The root may be silent as long as it likes, its machine may not: with that one gone nobody would end the
// ranks here before TCP does, a quarter of an hour later.
bool Uplink::machine_is_gone(int64_t now) {
    const int64_t unconfirmed = pulse_.lost(rhythm_, now) ? channel_->unconfirmed_ms() : 0;
    if (unconfirmed == 0) confirmed_ = now;
    return std::min(unconfirmed, now - confirmed_) > rhythm_.silent_ms;
}

void Uplink::watch(int64_t now) {
    if (awake_.stood_still(rhythm_, now)) pulse_.heard(now);
    if (lost_since_ != 0 && now - lost_at_ < kBusyMs && connecting_ && connecting_->let_in(kRoot))
        lost_since_ = now;
    if (!channel_) return;
    if (machine_is_gone(now)) {
        spdlog::warn("the machine above has confirmed nothing for {} s", (now - confirmed_) / 1000);
        return lose();
    }
    if (!channel_->error().empty()) spdlog::warn("from above: {}", channel_->error());
    if (channel_->closed() || (!to_root_ && pulse_.lost(rhythm_, now))) return lose();
    if (!pulse_.due(rhythm_, now)) return;
    channel_->send(wire::Beat{});
    pulse_.said(now);
}

int Uplink::rest(int otherwise) const {
    otherwise = std::min(otherwise, static_cast<int>(rhythm_.beat_ms / 2));
    if (connecting_) return connecting_->rest(otherwise);
    if (channel_ && !moving_) return otherwise;
    return static_cast<int>(std::clamp<int64_t>(next_try_ - tree::now_ms(), 0, otherwise));
}

void Uplink::send(const wire::Message& message) {
    if (!channel_) return;
    channel_->send(message);
    pulse_.said(tree::now_ms());
}

void Uplink::flush(int ms) {
    if (channel_) channel_->flush(ms);
}

}  // namespace fermata::noded
