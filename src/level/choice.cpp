#include "level/choice.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/invariant.h"
#include "base/text.h"

namespace fermata::level {

image::Checksum sum_of(const std::map<uint32_t, ImageIs>& images) {
    std::string text;
    for (auto& [rank, image] : images) text += fmt::format("{} {} {}\n", rank, image.bytes, image.checksum);
    return image::checksum_of(text.data(), text.size());
}

void Choice::has(const NodePlace& place, Generation generation, uint32_t rank, const ImageIs& image) {
    copies_[{generation, rank}].at[place] = image;
}

void Choice::failed(Generation generation, const Move& move, const std::string& why) {
    for (uint32_t rank : move.ranks) {
        Copies& copies = copies_[{generation, rank}];
        copies.at.erase(move.from);
        copies.failure = why;
    }
}

const Choice::Copies* Choice::copies_of(Generation generation, uint32_t rank) const {
    auto found = copies_.find({generation, rank});
    return found == copies_.end() ? nullptr : &found->second;
}

// "", and from where this rank's image is to be taken (none: it is where the rank reads it); or why it cannot
// be had. A copy on the rank's own node comes first; among other nodes the one where the image was written,
// then the one that is asked for the fewest others.
std::string Choice::find(const Candidate& candidate, uint32_t rank, const std::map<NodePlace, size_t>& asked,
                         std::optional<NodePlace>* from) const {
    always(rank < candidate.images.size(), "an image of a rank that the generation does not have");
    const std::string written = rank < candidate.hosts.size() ? candidate.hosts[rank] : "a node";
    auto waits = place_.find(rank);
    const std::string here = waits == place_.end() ? "" : waits->second;
    const Copies* copies = copies_of(candidate.generation, rank);
    const NodePlace* best = nullptr;
    auto burden = [&](const NodePlace& place) -> size_t {
        if (place.node == here) return 0;
        auto found = asked.find(place);
        return place.node == written ? 1 : 2 + (found == asked.end() ? 0 : found->second);
    };
    from->reset();
    if (copies)
        for (auto& [place, image] : copies->at) {
            if (image != candidate.images[rank]) continue;
            if (place == NodePlace{here, candidate.medium()}) return {};
            if (!best || burden(place) < burden(*best)) best = &place;
        }
    if (best && !here.empty()) return *from = *best, "";
    if (best) return fmt::format("nobody knows where rank {} waits", rank);
    if (copies && !copies->failure.empty()) return fmt::format("rank {}: {}", rank, copies->failure);
    if (auto broken = candidate.broken.find(rank); broken != candidate.broken.end())
        return fmt::format("{}, and no node has another copy", broken->second);
    return fmt::format("the image of rank {} was in {}, and is not there any more", rank,
                       words_of(candidate.medium(), written));
}

// "": every rank can have its image, after these moves.
std::string Choice::try_all(const Candidate& candidate, std::vector<Move>& moves) const {
    const bool in_files = candidate.level == store::LevelName::files;
    std::map<NodePlace, size_t> asked;
    std::map<std::pair<NodePlace, std::string>, std::vector<uint32_t>> from_to;
    for (uint32_t rank = 0; rank < candidate.images.size(); ++rank) {
        if (in_files && candidate.broken.count(rank) == 0) continue;
        std::optional<NodePlace> from;
        if (std::string why = find(candidate, rank, asked, &from); !why.empty()) return why;
        if (!from) continue;
        ++asked[*from];
        from_to[{*from, place_.at(rank)}].push_back(rank);
    }
    for (auto& [way, ranks] : from_to) moves.push_back({way.first, way.second, ranks});
    return {};
}

Choice::Verdict Choice::verdict() const {
    Verdict verdict;
    for (size_t i = 0; i < candidates_.size(); ++i) {
        always(verdict.moves.empty(), "images that are moved for a generation that cannot be had");
        const std::string why = try_all(candidates_[i], verdict.moves);
        if (why.empty()) {
            verdict.candidate = i;
            return verdict;
        }
        verdict.lost +=
            fmt::format("{}{}: {}", verdict.lost.empty() ? "" : "; ", candidates_[i].generation.name(), why);
    }
    return verdict;
}

std::string Choice::taken(const Verdict& verdict) const {
    if (!verdict.candidate || verdict.moves.empty()) return {};
    always(*verdict.candidate < candidates_.size(), "a verdict for no candidate");
    const Candidate& candidate = candidates_[*verdict.candidate];
    // Images of one place, whoever takes them: those that were written on that node, and those that others
    // had written.
    std::map<std::pair<NodePlace, bool>, std::set<uint32_t>> all;
    for (const Move& move : verdict.moves)
        for (uint32_t rank : move.ranks) {
            const bool own = candidate.hosts.empty() || candidate.hosts.at(rank) == move.from.node;
            all[{move.from, own}].insert(rank);
        }
    std::string line = candidate.generation.name() + ":";
    const char* before = " ";
    for (auto& [from, ranks] : all) {
        line += fmt::format("{}the image{} of rank{} {} from {}{}", before, ranks.size() > 1 ? "s" : "",
                            ranks.size() > 1 ? "s" : "", text_of_numbers(ranks), from.first.words(),
                            from.second        ? ""
                            : ranks.size() > 1 ? ", their buddy"
                                               : ", its buddy");
        before = ", ";
    }
    return line;
}

bool Choice::is_in_local(const Candidate& candidate) const {
    for (uint32_t rank = 0; rank < candidate.images.size(); ++rank) {
        const Copies* copies = copies_of(candidate.generation, rank);
        if (!copies) return false;
        const bool there = std::any_of(copies->at.begin(), copies->at.end(), [&](const auto& one) {
            return one.first.medium == Medium::local && one.second == candidate.images[rank];
        });
        if (!there) return false;
    }
    return !candidate.images.empty();
}

bool Choice::twice(const Verdict& verdict,
                   const std::function<std::string(const std::string&)>& domain) const {
    if (!verdict.candidate) return false;
    const Candidate& candidate = candidates_[*verdict.candidate];
    for (uint32_t rank = 0; rank < candidate.images.size(); ++rank) {
        std::set<std::string> domains;
        if (const Copies* copies = copies_of(candidate.generation, rank))
            for (auto& [place, image] : copies->at)
                if (place.medium == Medium::memory && image == candidate.images[rank])
                    domains.insert(domain(place.node));
        if (auto place = place_.find(rank); place != place_.end()) domains.insert(domain(place->second));
        if (domains.size() < 2) return false;
    }
    return true;
}

}  // namespace fermata::level
