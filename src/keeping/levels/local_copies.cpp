#include "keeping/levels/local_copies.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/invariant.h"
#include "keeping/orders/errand.h"

namespace fermata::keeping {

Kind LocalCopies::kind() {
    return {.name = "local",
            .shape = "local",
            .read = [](const Entry& entry, level::Levels& levels) { levels.local = entry.period(); },
            .period = [](const level::Levels& levels) { return levels.local; },
            .make = make_level<LocalCopies>};
}

std::optional<double> LocalCopies::period() const {
    return is_wanted(means_.settings.levels) ? means_.settings.levels.local : std::nullopt;
}

std::vector<Generation> LocalCopies::coming_to(Medium medium) const {
    return medium == Medium::local ? in_use() : std::vector<Generation>();
}

std::vector<Generation> LocalCopies::missing(Generation newest) const {
    const Account& account = means_.account;
    if (Generation(account.newest.generation) != newest) return {};
    return account.book.to_copy_from_memory(newest, store::LevelName::local);
}

Copies::Order LocalCopies::order(const std::vector<Generation>& generations, uint32_t number) {
    const Account& account = means_.account;
    always(means_.settings.levels.local.has_value(), "copies to local directories that nobody wants");
    const auto ranks = account.ranks_by_node();
    const double of_node =
        static_cast<double>(account.newest.bytes()) / static_cast<double>(std::max<size_t>(ranks.size(), 1));
    wire::Fetch fetch{number,
                      false,
                      means_.settings.levels.rate(of_node, *means_.settings.levels.local),
                      {},
                      Medium::local};
    for (auto& [node, its] : ranks) {
        const level::Move move{NodePlace{node}, node, its};
        fetch.errands.push_back(errand_of(move, account.newest, generations, account.address_of(node)));
    }
    return order_of(fetch);
}

std::optional<Copies::Answer> LocalCopies::answer_in(const wire::Message& message) const {
    return fetched_in(message);
}

// The nodes have synced their images: once the manifests are, too, the copy outlives the machines.
void LocalCopies::count(RoundOver& over) {
    for (Generation one : over.generations) means_.store.sync_manifest(one);
    for (Generation one : over.generations) means_.account.book.also_in(one, store::LevelName::local);
}

void LocalCopies::tell(const RoundOver& over) {
    Copies::tell(over, "is in local directories, too: {} in {:.2f} s",
                 "could not be copied to local directories");
}

void LocalCopies::add_status(nlohmann::json& all) const {
    if (Generation newest = means_.account.book.newest_in(store::LevelName::local))
        all["local"] = newest.name();
    if (is_under_way()) all["to_local"] = copying().name();
    if (!trouble().empty()) all["local_trouble"] = trouble();
}

}  // namespace fermata::keeping
