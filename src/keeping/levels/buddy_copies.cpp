#include "keeping/levels/buddy_copies.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/invariant.h"
#include "keeping/orders/errand.h"

namespace fermata::keeping {
namespace {

constexpr const char* kAnywhere = "anywhere";

// Without a period each generation in memory is copied.
void read(const Entry& entry, level::Levels& levels) {
    Entry rest = entry;
    levels.buddy_anywhere = !rest.words.empty() && rest.words.back() == kAnywhere;
    if (levels.buddy_anywhere) rest.words.pop_back();
    levels.buddy = rest.words.empty() ? 0 : rest.period();
}

std::string text(const level::Levels& levels) {
    if (!levels.buddy) return {};
    return (*levels.buddy > 0 ? fmt::format("buddy {:g}s", *levels.buddy) : "buddy") +
           (levels.buddy_anywhere ? fmt::format(" {}", kAnywhere) : "");
}

}  // namespace

Kind BuddyCopies::kind() {
    return {.name = "buddy",
            .shape = "buddy",
            .read = read,
            .period = [](const level::Levels& levels) { return levels.buddy; },
            .text = text,
            .needs_memory = true,
            .make = make_level<BuddyCopies>};
}

// Levels that are chosen by measuring do without buddies where there can be none.
std::string BuddyCopies::place_on(const std::vector<std::string>& nodes) {
    const level::Levels& levels = means_.settings.levels;
    std::string why_not;
    if (levels.buddy) {
        why_not = means_.settings.restored ? "" : levels.domains.why_not(nodes);
        if (why_not.empty()) {
            means_.account.buddies = level::Buddies(nodes, levels.domains, levels.buddy_anywhere);
            why_not = means_.account.buddies.why_not();
        }
    }
    if (means_.planned.on()) means_.planned.no_buddies(std::exchange(why_not, ""));
    return why_not;
}

std::optional<double> BuddyCopies::period() const {
    return means_.account.buddies.all().empty() ? std::nullopt : means_.settings.levels.buddy;
}

std::vector<Generation> BuddyCopies::missing(Generation newest) const {
    const Account& account = means_.account;
    if (Generation(account.newest.generation) != newest) return {};
    return account.book.to_copy_from_memory(newest, level::kBuddies);
}

Copies::Order BuddyCopies::order(const std::vector<Generation>& generations, uint32_t number) {
    const Account& account = means_.account;
    always(!account.buddies.all().empty() && means_.settings.levels.buddy, "second copies without buddies");
    const double of_node =
        static_cast<double>(account.newest.bytes()) / static_cast<double>(account.buddies.all().size());
    wire::Fetch fetch{number, false, means_.settings.levels.rate(of_node, *means_.settings.levels.buddy), {}};
    for (auto& [node, its] : account.ranks_by_node()) {
        const level::Move move{NodePlace{node}, account.buddy_of(node), its};
        fetch.errands.push_back(errand_of(move, account.newest, generations, account.address_of(node)));
    }
    return order_of(fetch);
}

std::optional<Copies::Answer> BuddyCopies::answer_in(const wire::Message& message) const {
    return fetched_in(message);
}

void BuddyCopies::count(RoundOver& over) {
    for (Generation one : over.generations) means_.account.book.also_in(one, level::kBuddies);
    means_.planned.buddies(over.bytes, over.seconds);
}

void BuddyCopies::tell(const RoundOver& over) {
    Copies::tell(over, "is in the memory of buddies, too: {} in {:.2f} s",
                 "could not be copied to the memory of buddies");
}

void BuddyCopies::add_status(nlohmann::json& all) const {
    if (!means_.settings.levels.buddy) return;
    all["buddies"] = means_.account.buddies.all();
    if (Generation newest = means_.account.book.newest_in(level::kBuddies)) all["buddied"] = newest.name();
    if (is_under_way()) all["to_buddies"] = copying().name();
    if (!trouble().empty()) all["buddies_trouble"] = trouble();
}

}  // namespace fermata::keeping
