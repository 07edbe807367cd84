#include "level/choice.h"

#include <fmt/format.h>

namespace fermata::level {

void Choice::has(const std::string& host, Generation generation, uint32_t rank, const ImageIs& image) {
    copies_[{generation, rank}][host] = image;
}

// "": each rank's image is where the rank waits.
std::string Choice::why_not(const Candidate& candidate) const {
    if (candidate.level == store::LevelName::files) return {};
    for (uint32_t rank = 0; rank < candidate.images.size(); ++rank) {
        const ImageIs& wanted = candidate.images[rank];
        auto place = place_.find(rank);
        const std::string here = place == place_.end() ? "" : place->second;
        std::string elsewhere;
        bool found = false;
        if (auto copies = copies_.find({candidate.generation, rank}); copies != copies_.end())
            for (auto& [host, image] : copies->second) {
                if (image != wanted) continue;
                found = found || host == here;
                elsewhere = host;
            }
        if (found) continue;
        if (!elsewhere.empty())
            return fmt::format("rank {} is on {} now, and its image in the memory of {}", rank, here,
                               elsewhere);
        return fmt::format("the image of rank {} was in the memory of {}, and is not there any more", rank,
                           rank < candidate.hosts.size() ? candidate.hosts[rank] : "a node");
    }
    return {};
}

Choice::Verdict Choice::verdict() const {
    Verdict verdict;
    for (size_t i = 0; i < candidates_.size(); ++i) {
        const std::string why = why_not(candidates_[i]);
        if (why.empty()) {
            verdict.candidate = i;
            return verdict;
        }
        verdict.lost +=
            fmt::format("{}{}: {}", verdict.lost.empty() ? "" : "; ", candidates_[i].generation.name(), why);
    }
    return verdict;
}

}  // namespace fermata::level
