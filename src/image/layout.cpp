#include "image/layout.h"

#include <charconv>

#include "base/invariant.h"
#include "image/image.h"

namespace fermata::image {
namespace {

constexpr std::string_view kGroupName = "ranks-", kImageEnd = ".img", kGroupWord = "group:";

// All of the text, and no more than a job has ranks.
std::optional<uint32_t> number_of(std::string_view digits) {
    uint32_t number = 0;
    auto [at, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc{} || at != digits.data() + digits.size() || number > Rank::kMost) return {};
    return number;
}

}  // namespace

std::string group_name(Rank lowest) {
    return fmt::format("{}{:06}{}", kGroupName, lowest.number(), kImageEnd);
}

std::optional<Rank> lowest_of_group(std::string_view name) {
    if (!name.starts_with(kGroupName) || !name.ends_with(kImageEnd)) return {};
    if (name.size() < kGroupName.size() + kImageEnd.size()) return {};
    name.remove_prefix(kGroupName.size());
    name.remove_suffix(kImageEnd.size());
    const auto number = number_of(name);
    const auto rank = number ? Rank::of(*number) : std::nullopt;
    // Written as we write it.
    if (!rank || fmt::format("{:06}", rank->number()) != name) return {};
    return rank;
}

std::optional<Layout> Layout::of(std::string_view word) {
    if (word == "files") return Layout();
    if (word == "shared") return shared();
    if (word == "node") return node();
    if (!word.starts_with(kGroupWord)) return {};
    const auto ranks = number_of(word.substr(kGroupWord.size()));
    if (!ranks || *ranks == 0) return {};
    return group(*ranks);
}

std::string Layout::word() const {
    switch (kind_) {
        case Kind::shared:
            return "shared";
        case Kind::node:
            return "node";
        case Kind::group:
            return fmt::format("{}{}", kGroupWord, ranks_);
        case Kind::files:
            break;
    }
    return "files";
}

std::string Layout::file_of(Rank rank, Rank lowest_of_node) const {
    switch (kind_) {
        case Kind::shared:
            return kSharedName;
        case Kind::node:
            return group_name(lowest_of_node);
        case Kind::group:
            always(ranks_ > 0, "a group of no ranks");
            return group_name(Rank(rank.number() / ranks_ * ranks_));
        case Kind::files:
            break;
    }
    return image_name(rank);
}

}  // namespace fermata::image
