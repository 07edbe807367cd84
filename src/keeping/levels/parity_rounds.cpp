#include "keeping/levels/parity_rounds.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "erasure/groups.h"
#include "tree/ranks.h"

namespace fermata::keeping {
std::string ParityRounds::group_up(const std::vector<std::string>& nodes) {
    groups_.clear();
    if (!settings_.levels.parity) return {};
    if (const std::string why = settings_.levels.domains.why_not(nodes); !why.empty() && !settings_.restored)
        return why;
    std::vector<std::string> of;
    for (const std::string& node : nodes) of.push_back(settings_.levels.domains.of(node));
    try {
        for (const std::vector<size_t>& group : erasure::groups_of(of, settings_.levels.parity->scheme)) {
            groups_.emplace_back();
            for (size_t node : group) groups_.back().push_back(nodes[node]);
        }
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

bool ParityRounds::due(Generation newest, int64_t now) const {
    if (!on() || round_ || !newest || newest == newest_) return false;
    return begun_ == 0 || static_cast<double>(now - begun_) >= settings_.levels.parity->period * 1000;
}

void ParityRounds::start(const What& what, int64_t now) {
    std::map<std::string, tree::Ranks> ranks;
    for (size_t rank = 0; rank < what.places->size(); ++rank)
        ranks[(*what.places)[rank]].add(tree::Ranks(static_cast<int32_t>(rank)));
    begun_ = now;
    newest_ = what.generations.back();
    // Each node reads as much for each row of parity as it has data.
    const double of_node = static_cast<double>(what.bytes) / static_cast<double>(ranks.size()) *
                           settings_.levels.parity->scheme.losses();
    round_ = Round{{++rounds_, settings_.levels.rate(of_node, settings_.levels.parity->period), {}},
                   {},
                   {what.generations, "", 0, 0},
                   monotonic_s()};
    for (Generation generation : what.generations)
        for (const std::vector<std::string>& nodes : groups_) {
            wire::PeerGroup group{generation, settings_.levels.parity->scheme.losses(), {}, {}};
            for (const std::string& node : nodes) {
                auto addresses = what.addresses->find(node);
                group.peers.push_back(
                    {node, addresses == what.addresses->end() ? "" : addresses->second, ranks[node].runs()});
                round_->waiting.insert(node);
            }
            round_->order.groups.push_back(std::move(group));
        }
    send_(round_->order);
}

bool ParityRounds::heard(const wire::Message& message) {
    auto* done = std::get_if<wire::Encoded>(&message);
    if (!done) return false;
    if (!round_ || done->number != round_->order.number || round_->waiting.erase(done->host) == 0)
        return true;
    round_->result.bytes += done->bytes;
    if (round_->result.why_not.empty() && !done->error.empty())
        round_->result.why_not = fmt::format("{}: {}", done->host, done->error);
    return true;
}

void ParityRounds::say_again() {
    if (round_) send_(round_->order);
}

std::vector<Generation> ParityRounds::under_way() const {
    return round_ ? round_->result.generations : std::vector<Generation>();
}

std::optional<RoundOver> ParityRounds::over(const std::set<std::string>& here) {
    if (!round_) return {};
    for (const std::string& node : round_->waiting)
        if (!here.count(node) && round_->result.why_not.empty())
            round_->result.why_not = fmt::format("the node daemon of {} is gone", node);
    // One failure is enough: the others wait for what does not come, until the next order.
    if (!round_->waiting.empty() && round_->result.why_not.empty()) return {};
    RoundOver over = std::move(round_->result);
    over.seconds = monotonic_s() - round_->began;
    round_.reset();
    return over;
}

}  // namespace fermata::keeping
