#include "root/buddy_copies.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "root/restart_choice.h"

namespace fermata::root {
namespace {

// A copy is to be over when half of the time to the next one has passed; slower than this it need not be.
constexpr uint64_t kLeastLimit = 64u << 20;  // bytes a second, of a node

}  // namespace

BuddyCopies::BuddyCopies(const Settings& settings, Send send, uint32_t& rounds)
    : settings_(settings), send_(std::move(send)), rounds_(rounds) {}

std::string BuddyCopies::pair_up(const std::vector<std::string>& nodes) {
    if (!settings_.levels.buddy) return {};
    const level::Domains& domains = settings_.levels.domains;
    if (auto unnamed = domains.unnamed(nodes); !unnamed.empty() && !settings_.restored)
        return fmt::format("the file of --domains does not name {}", fmt::join(unnamed, ", "));
    buddies_ = level::Buddies(nodes, domains, settings_.levels.buddy_anywhere);
    return buddies_.why_not();
}

std::string BuddyCopies::buddy_of(const std::string& node) const {
    auto found = buddies_.all().find(node);
    return found == buddies_.all().end() ? "" : found->second;
}

bool BuddyCopies::due(Generation newest, int64_t now) const {
    if (!on() || fetching_ || !newest || newest == newest_) return false;
    return begun_ == 0 || static_cast<double>(now - begun_) >= *settings_.levels.buddy * 1000;
}

uint64_t BuddyCopies::limit(uint64_t bytes) const {
    if (settings_.levels.copy_limit > 0) return settings_.levels.copy_limit;
    const double period = *settings_.levels.buddy;
    if (period <= 0) return 0;
    const double of_node = static_cast<double>(bytes) / static_cast<double>(buddies_.all().size());
    return std::max(static_cast<uint64_t>(of_node / (period / 2)), kLeastLimit);
}

void BuddyCopies::start(const What& what, int64_t now) {
    generations_ = what.generations;
    newest_ = generations_.back();
    begun_ = now;
    began_ = monotonic_s();
    std::map<std::string, std::vector<uint32_t>> ranks;
    for (uint32_t rank = 0; rank < what.places->size(); ++rank) ranks[(*what.places)[rank]].push_back(rank);
    wire::Fetch order{++rounds_, false, limit(what.manifest->bytes()), {}};
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

std::optional<BuddyCopies::Over> BuddyCopies::over(const std::set<std::string>& here) {
    if (!fetching_) return {};
    fetching_->only(here);
    if (!fetching_->done()) return {};
    Over over{generations_, "", fetching_->bytes(), monotonic_s() - began_};
    if (!fetching_->failed().empty()) over.why_not = fetching_->failed().front().why;
    fetching_.reset();
    return over;
}

}  // namespace fermata::root
