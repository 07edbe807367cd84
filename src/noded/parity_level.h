// ParityLevel is the node daemon's part of erasure code between nodes (src/erasure): orders of the root, each
// done in a thread of its own, and what became of them.
#pragma once

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/background.h"
#include "erasure/encode.h"
#include "level/throttle.h"
#include "noded/peer_source.h"
#include "wire/message.h"

namespace fermata::noded {

class ParityLevel {
  public:
    explicit ParityLevel(std::function<void(const wire::Message&)> up) : up_(std::move(up)) {}
    ~ParityLevel() { stop(); }
    ParityLevel(const ParityLevel&) = delete;
    ParityLevel& operator=(const ParityLevel&) = delete;

    // Nothing throws: what goes wrong is said upwards. A newer order takes the place of one under way.
    // `own` is asked only for an order that this node has a part in and has not begun yet; without patience.
    using Own = std::function<OwnNode()>;
    void encode(const wire::Encode& order, const std::string& node, const Own& own);
    void rebuild(const wire::Rebuild& order, const std::string& node, const Own& own);
    // Gives up what is under way, and nobody hears of it.
    void stop();

    void add_to(std::vector<pollfd>& fds) const {
        for (int one : {encoding_.descriptor(), rebuilding_.descriptor()}) fds.push_back({one, POLLIN, 0});
    }
    // Whatever has become ready.
    void serve();

  private:
    erasure::Between between();
    OwnNode with_patience(OwnNode own) const;

    const std::function<void(const wire::Message&)> up_;
    uint32_t last_encoding_ = 0, last_rebuilding_ = 0;  // orders that were begun: each is done once
    level::Throttle throttle_;
    std::atomic<bool> given_up_{false};
    Background<wire::Encoded> encoding_;  // these two last: they end first
    Background<wire::Rebuilt> rebuilding_;
};

}  // namespace fermata::noded
