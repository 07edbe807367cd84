#include "keeping/levels/buddy_copies.h"

#include <fmt/format.h>

#include "keeping/orders/errand.h"

namespace fermata::keeping {
BuddyCopies::BuddyCopies(const Settings& settings, Send send, uint32_t& rounds)
    : settings_(settings), rounds_(rounds), copies_(std::move(send)) {}

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

std::map<std::string, std::vector<uint32_t>> BuddyCopies::What::by_node() const {
    std::map<std::string, std::vector<uint32_t>> ranks;
    for (uint32_t rank = 0; rank < places->size(); ++rank) ranks[(*places)[rank]].push_back(rank);
    return ranks;
}

std::string BuddyCopies::What::address_of(const std::string& node) const {
    auto found = addresses->find(node);
    return found == addresses->end() ? "" : found->second;
}

bool BuddyCopies::due(Generation newest, int64_t now) const {
    return on() && settings_.levels.buddy && copies_.due(newest, *settings_.levels.buddy, now);
}

void BuddyCopies::start(const What& what, int64_t now) {
    const double of_node =
        static_cast<double>(what.manifest->bytes()) / static_cast<double>(buddies_.all().size());
    wire::Fetch order{++rounds_, false, settings_.levels.rate(of_node, *settings_.levels.buddy), {}};
    for (auto& [node, its] : what.by_node()) {
        const level::Move move{NodePlace{node}, buddy_of(node), its};
        order.errands.push_back(errand_of(move, *what.manifest, what.generations, what.address_of(node)));
    }
    copies_.start(what.generations, order, now);
}

}  // namespace fermata::keeping
