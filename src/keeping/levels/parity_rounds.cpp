#include "keeping/levels/parity_rounds.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/invariant.h"
#include "base/text.h"
#include "erasure/groups.h"
#include "tree/ranks.h"

namespace fermata::keeping {
namespace {

constexpr const char* kName = "rs";

}  // namespace

Kind ParityRounds::kind() {
    return {.name = kName,
            .shape = "rs:K+M",
            .read =
                [](const Entry& entry, level::Levels& levels) {
                    if (!erasure::Scheme::parse(entry.argument))
                        refuse_levels(
                            fmt::format("wants K+M of at most {} nodes behind rs:, such as rs:4+2, not '{}'",
                                        erasure::Scheme::kMost, visible(entry.argument)));
                    read_described(entry, levels);
                },
            .period = [](const level::Levels& levels) { return period_of_described(kName, levels); },
            .text = [](const level::Levels& levels) { return text_of_described(kName, levels); },
            .needs_memory = true,
            .make = make_level<ParityRounds>};
}

std::optional<erasure::Scheme> ParityRounds::scheme() const {
    const level::Levels::Wish* wish = means_.settings.levels.wish(kName);
    return wish ? erasure::Scheme::parse(wish->argument) : std::nullopt;
}

std::string ParityRounds::place_on(const std::vector<std::string>& nodes) {
    groups_.clear();
    const level::Levels& levels = means_.settings.levels;
    const std::optional<erasure::Scheme> scheme = this->scheme();
    if (!scheme) return {};
    if (const std::string why = levels.domains.why_not(nodes); !why.empty() && !means_.settings.restored)
        return why;
    std::vector<std::string> of;
    for (const std::string& node : nodes) of.push_back(levels.domains.of(node));
    try {
        for (const std::vector<size_t>& group : erasure::groups_of(of, *scheme)) {
            groups_.emplace_back();
            for (size_t node : group) groups_.back().push_back(nodes[node]);
        }
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

std::optional<double> ParityRounds::period() const {
    if (groups_.empty()) return {};
    return period_of_described(kName, means_.settings.levels);
}

// Parity that was damaged is made anew while mending waits for it, and so before anything else.
bool ParityRounds::turn(const Moment& moment) {
    if (!moment.writing)
        if (const auto damaged = std::exchange(means_.account.damage.to_encode, {});
            !damaged.empty() && !groups_.empty()) {
            begin(damaged, moment.now);
            return false;
        }
    return Copies::turn(moment);
}

Copies::Order ParityRounds::order(const std::vector<Generation>& generations, uint32_t number) {
    const Account& account = means_.account;
    const level::Levels& levels = means_.settings.levels;
    std::map<std::string, tree::Ranks> ranks;
    for (size_t rank = 0; rank < account.places.size(); ++rank)
        ranks[account.places[rank]].add(tree::Ranks(static_cast<int32_t>(rank)));
    always(!groups_.empty() && scheme() && !account.places.empty(), "parity without groups, or of nothing");
    const uint32_t losses = scheme().value().losses();
    // Each node reads as much for each row of parity as it has data.
    const double of_node = static_cast<double>(account.bytes) / static_cast<double>(ranks.size()) * losses;
    wire::Encode encode{number, levels.rate(of_node, period().value()), {}};
    Order order;
    for (Generation generation : generations)
        for (const std::vector<std::string>& nodes : groups_) {
            wire::PeerGroup group{generation, losses, {}, {}};
            for (const std::string& node : nodes) {
                group.peers.push_back({node, account.address_of(node), ranks[node].runs()});
                order.nodes.insert(node);
            }
            encode.groups.push_back(std::move(group));
        }
    order.message = std::move(encode);
    return order;
}

std::optional<Copies::Answer> ParityRounds::answer_in(const wire::Message& message) const {
    auto* done = std::get_if<wire::Encoded>(&message);
    if (!done) return {};
    return Answer{done->number, done->host, done->bytes, done->error};
}

void ParityRounds::count(RoundOver& over) {
    for (Generation one : over.generations) means_.account.book.also_in(one, level::kParity);
}

void ParityRounds::tell(const RoundOver& over) {
    Copies::tell(over, "has parity: {} of it in {:.2f} s", "could not get parity");
}

void ParityRounds::add_status(nlohmann::json& all) const {
    if (!scheme()) return;
    if (Generation newest = means_.account.book.newest_in(level::kParity)) all["parity"] = newest.name();
    if (is_under_way()) all["to_parity"] = copying().name();
    if (!trouble().empty()) all["parity_trouble"] = trouble();
}

}  // namespace fermata::keeping
