// Uplink is a node daemon's connection upwards: to the root at first, then to where the root says that this
// daemon stands. When it ends, the ancestors are tried, nearest first, and the root is last; again and again,
// with back-off and jitter, until somebody answers or the daemon gives up.
#pragma once

#include <poll.h>

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tree/channel.h"
#include "tree/pulse.h"
#include "tree/root_address.h"

namespace fermata::noded {

class Uplink {
  public:
    Uplink(tree::Channel root, const wire::Key& key, std::string root_addresses);

    // Called from serve().
    std::function<void(const wire::Message& message)> on_message;
    std::function<void()> on_connected;  // to another one than before
    std::function<void()> on_lost;

    // The root has said where to go: without a way it is the right place.
    void follow(const wire::Parent& parent);

    void add_to(std::vector<pollfd>& fds);
    void serve(const std::vector<pollfd>& fds, size_t first);
    int rest(int otherwise) const;  // ms that poll may take
    void send(const wire::Message& message);
    void flush(int ms);

    // ms: who is silent for so long is lost.
    int64_t silent_ms() const { return rhythm_.silent_ms; }
    // ms: since when nobody above can be reached; 0 = somebody can. A root that lets connections in and does
    // not speak is busy (its file system stands still, it was suspended), and not gone.
    int64_t lost_since() const { return lost_since_; }

  private:
    void connect();
    void connected(tree::Channel channel);
    void lose();
    void watch(int64_t now);
    bool machine_is_gone(int64_t now);

    const wire::Key key_;
    const std::string root_addresses_;
    std::vector<wire::Hop> way_;
    bool moving_ = false;  // to a parent: the connection to the root is not where this daemon stands
    std::optional<tree::Channel> channel_;
    bool to_root_ = true;  // only its end tells that the root is gone: a root that stands still may go on
    std::optional<tree::Connecting> connecting_;
    size_t polled_ = 0;
    tree::Rhythm rhythm_;
    tree::Pulse pulse_;
    int64_t confirmed_ = 0;  // ms: when the root was heard, or nothing was on its way
    tree::Awake awake_;
    int64_t lost_since_ = 0, lost_at_ = 0;
    int64_t next_try_ = 0;  // ms
    int pause_ms_ = 0;
    std::minstd_rand random_{std::random_device{}()};
};

}  // namespace fermata::noded
