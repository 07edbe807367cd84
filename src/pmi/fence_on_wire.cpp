#include "pmi/fence_on_wire.h"

namespace fermata::pmi {

wire::Fence on_wire(const Fence& fence) {
    wire::Fence said{fence.name.epoch, {}, fence.name.number, fence.ranks, fence.of, fence.data, fence.fault};
    for (const RankRange& range : fence.name.among)
        said.among.push_back({range.first().number(), range.count()});
    return said;
}

Fence from_wire(const wire::Fence& said) {
    Fence fence;
    fence.name.epoch = said.epoch;
    fence.name.number = said.number;
    fence.ranks = said.ranks;
    fence.of = said.of;
    fence.data = said.data;
    fence.fault = said.fault;
    for (const wire::RankRange& range : said.among) {
        auto ranks = RankRange::of(range.first, range.count);
        if (ranks)
            fence.name.among.push_back(*ranks);
        else
            fence.fault = "a fence among ranks that no job has";
    }
    return fence;
}

}  // namespace fermata::pmi
