#include "noded/parity_level.h"

#include <algorithm>

#include "base/error.h"
#include "base/invariant.h"
#include "noded/parity_work.h"

namespace fermata::noded {
namespace {

bool has(const wire::PeerGroup& group, const std::string& host) {
    return std::any_of(group.peers.begin(), group.peers.end(),
                       [&](const wire::Peer& peer) { return peer.host == host; });
}

}  // namespace

OwnNode ParityLevel::with_patience(OwnNode own) const {
    own.patience.given_up = [this] { return given_up_.load(); };
    return own;
}

// After each piece.
erasure::Between ParityLevel::between() {
    return [this](uint64_t bytes) {
        throttle_.spend(bytes, [this] { return given_up_.load(); });
        if (given_up_) fail("it was given up");
    };
}

void ParityLevel::stop() {
    given_up_ = true;
    encoding_.wait();
    rebuilding_.wait();
    given_up_ = false;
}

void ParityLevel::encode(const wire::Encode& order, const std::string& node, const Own& own_node) {
    if (order.number == last_encoding_ && encoding_.busy()) return throttle_.limit(order.bytes_per_second);
    if (order.number <= last_encoding_) return;  // it is over
    last_encoding_ = order.number;
    stop();
    always(!encoding_.busy() && !rebuilding_.busy(), "parity that is made twice at once");
    std::vector<wire::PeerGroup> mine;
    for (const wire::PeerGroup& group : order.groups)
        if (has(group, node)) mine.push_back(group);
    if (mine.empty()) return;
    OwnNode own = own_node();
    throttle_.limit(order.bytes_per_second);
    encoding_.start([this, mine, number = order.number, own = with_patience(std::move(own))] {
        wire::Encoded answer{number, own.name, 0, ""};
        try {
            for (const wire::PeerGroup& group : mine) answer.bytes += noded::encode(own, group, between());
        } catch (const std::exception& error) {
            answer.error = error.what();
        }
        return answer;
    });
}

void ParityLevel::rebuild(const wire::Rebuild& order, const std::string& node, const Own& own_node) {
    if (order.number <= last_rebuilding_) return;
    last_rebuilding_ = order.number;
    stop();
    always(!encoding_.busy() && !rebuilding_.busy(), "rebuilding while parity is made");
    std::vector<wire::Repair> mine;
    for (const wire::Repair& repair : order.repairs)
        if (repair.host == node) mine.push_back(repair);
    if (mine.empty()) return;
    OwnNode own = own_node();
    throttle_.limit(0);  // ranks wait for it
    rebuilding_.start(
        [this, mine, groups = order.groups, number = order.number, own = with_patience(std::move(own))] {
            wire::Rebuilt answer{number, own.name, {}, ""};
            for (const wire::Repair& repair : mine) try {
                    noded::rebuild(own, repair, groups, between());
                    answer.done.push_back(repair);
                } catch (const std::exception& error) {
                    answer.error = error.what();
                }
            return answer;
        });
}

void ParityLevel::serve() {
    if (auto done = encoding_.take()) up_(*done);
    if (auto done = rebuilding_.take()) up_(*done);
}

}  // namespace fermata::noded
