#include "root/buddy_copies.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "root/restart_choice.h"

namespace fermata::root {
BuddyCopies::BuddyCopies(const Settings& settings, Send send, uint32_t& rounds)
    : settings_(settings), send_(std::move(send)), rounds_(rounds) {}

std::string BuddyCopies::pair_up(const std::vector<std::string>& nodes) {
    if (!settings_.levels.buddy) return {};
    if (const std::string why = settings_.levels.domains.why_not(nodes); !why.empty() && !settings_.restored)
        return why;
    buddies_ = level::Buddies(nodes, settings_.levels.domains, settings_.levels.buddy_anywhere);
    return buddies_.why_not();
}

std::string BuddyCopies::buddy_of(const std::string& node) const {
    auto found = buddies_.all().find(node);
    return found == buddies_.all().end() ? "" : found->second;
}

bool BuddyCopies::due(Generation newest, int64_t now) const {
    if (!on() || !settings_.levels.buddy || fetching_ || !newest || newest == newest_) return false;
    return begun_ == 0 || static_cast<double>(now - begun_) >= *settings_.levels.buddy * 1000;
}

void BuddyCopies::start(const What& what, int64_t now) {
    generations_ = what.generations;
    newest_ = generations_.back();
    begun_ = now;
    began_ = monotonic_s();
    std::map<std::string, std::vector<uint32_t>> ranks;
    for (uint32_t rank = 0; rank < what.places->size(); ++rank) ranks[(*what.places)[rank]].push_back(rank);
    const double of_node =
        static_cast<double>(what.manifest->bytes()) / static_cast<double>(buddies_.all().size());
    wire::Fetch order{++rounds_, false, settings_.levels.rate(of_node, *settings_.levels.buddy), {}};
    for (auto& [node, its] : ranks) {
        auto addresses = what.addresses->find(node);
        order.errands.push_back(errand_of({node, buddy_of(node), its}, *what.manifest, generations_,
                                          addresses == what.addresses->end() ? "" : addresses->second));
    }
    fetching_.emplace(order);
    send_(order);
}

bool BuddyCopies::heard(const wire::Message& message) {
    auto* fetched = std::get_if<wire::Fetched>(&message);
    return fetched && fetching_ && fetching_->heard(*fetched);
}

void BuddyCopies::say_again() {
    if (fetching_) send_(fetching_->order());
}

std::vector<Generation> BuddyCopies::under_way() const {
    return fetching_ ? generations_ : std::vector<Generation>();
}

std::optional<RoundOver> BuddyCopies::over(const std::set<std::string>& here) {
    if (!fetching_) return {};
    fetching_->only(here);
    if (!fetching_->done()) return {};
    RoundOver over{generations_, "", fetching_->bytes(), monotonic_s() - began_};
    if (!fetching_->failed().empty()) over.why_not = fetching_->failed().front().why;
    fetching_.reset();
    return over;
}

}  // namespace fermata::root
