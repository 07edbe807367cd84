#include "keeping/orders/errand.h"

#include "base/invariant.h"
#include "tree/ranks.h"

namespace fermata::keeping {

level::ImageIs image_in(const store::ImageEntry& entry) { return {entry.bytes, entry.checksum.hex()}; }

wire::Errand errand_of(const level::Move& move, const store::Manifest& manifest,
                       const std::vector<Generation>& generations, const std::string& addresses) {
    always(!generations.empty() && generations.back().number() == manifest.generation,
           "an errand of another generation than its manifest");
    always(!move.ranks.empty() && !move.to.empty() && !move.from.node.empty(),
           "an errand of no images, or from nowhere to nowhere");
    std::map<uint32_t, level::ImageIs> images;
    tree::Ranks ranks;
    for (uint32_t rank : move.ranks) {
        always(rank < manifest.images.size(), "an errand of a rank that the generation does not have");
        images[rank] = image_in(manifest.images.at(rank));
        ranks.add(tree::Ranks(static_cast<int32_t>(rank)));
    }
    return {move.to,         move.from.node, addresses,
            generations,     ranks.runs(),   level::sum_of(images).bytes,
            move.from.medium};
}

}  // namespace fermata::keeping
