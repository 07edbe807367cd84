#include "keeping/levels/local_copies.h"

#include <algorithm>

#include "keeping/orders/errand.h"

namespace fermata::keeping {

LocalCopies::LocalCopies(const Settings& settings, CopyRounds::Send send, uint32_t& rounds)
    : settings_(settings), rounds_(rounds), copies_(std::move(send)) {}

bool LocalCopies::on() const { return settings_.levels.memory && settings_.levels.local; }

bool LocalCopies::due(Generation newest, int64_t now) const {
    return on() && copies_.due(newest, *settings_.levels.local, now);
}

void LocalCopies::start(const BuddyCopies::What& what, int64_t now) {
    const auto ranks = what.by_node();
    const double of_node =
        static_cast<double>(what.manifest->bytes()) / static_cast<double>(std::max<size_t>(ranks.size(), 1));
    wire::Fetch order{
        ++rounds_, false, settings_.levels.rate(of_node, *settings_.levels.local), {}, Medium::local};
    for (auto& [node, its] : ranks) {
        const level::Move move{NodePlace{node}, node, its};
        order.errands.push_back(errand_of(move, *what.manifest, what.generations, what.address_of(node)));
    }
    copies_.start(what.generations, order, now);
}

}  // namespace fermata::keeping
