#include "pmi/placement.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "base/invariant.h"

namespace fermata::pmi {

void Placement::add(uint32_t node, uint32_t ranks) {
    if (ranks > 0) append({node, 1, ranks});
}

Placement Placement::of(const std::vector<Block>& blocks) {
    Placement placement;
    for (const Block& block : blocks) placement.append(block);
    return placement;
}

Placement Placement::on_one_node(uint32_t ranks) {
    Placement placement;
    placement.add(0, ranks);
    return placement;
}

Placement Placement::by_rank(const std::vector<uint32_t>& nodes) {
    Placement placement;
    for (uint32_t node : nodes) placement.add(node, 1);
    return placement;
}

Placement Placement::moved(Rank rank, uint32_t node) const {
    std::vector<uint32_t> nodes;
    nodes.reserve(ranks_);
    for (const Block& block : blocks_)
        for (uint32_t i = 0; i < block.nodes; ++i)
            nodes.insert(nodes.end(), block.ranks_per_node, block.first_node + i);
    if (rank.number() >= nodes.size()) fail("rank {} of a placement of {}", rank.number(), ranks_);
    nodes[rank.number()] = node;
    return by_rank(nodes);
}

void Placement::append(const Block& block) {
    always(ranks_ <= Rank::kMost, "a placement of more ranks than a job can have");
    const uint64_t more = uint64_t{block.nodes} * block.ranks_per_node;
    if (more == 0) fail("a placement names a block without ranks");
    if (more + ranks_ > Rank::kMost || block.first_node > Rank::kMost)
        fail("a placement of more than {} ranks", Rank::kMost);
    ranks_ += static_cast<uint32_t>(more);
    nodes_ = std::max(nodes_, block.first_node + block.nodes);
    Block* last = blocks_.empty() ? nullptr : &blocks_.back();
    if (last && last->nodes == 1 && block.nodes == 1 && last->first_node == block.first_node) {
        // More on the same node. The block before may now go on with this one.
        Block grown = *last;
        grown.ranks_per_node += block.ranks_per_node;
        blocks_.pop_back();
        last = blocks_.empty() ? nullptr : &blocks_.back();
        if (last && last->ranks_per_node == grown.ranks_per_node &&
            last->first_node + last->nodes == grown.first_node)
            ++last->nodes;
        else
            blocks_.push_back(grown);
    } else if (last && last->ranks_per_node == block.ranks_per_node &&
               last->first_node + last->nodes == block.first_node) {
        last->nodes += block.nodes;
    } else {
        blocks_.push_back(block);
    }
}

uint32_t Placement::node_of(Rank rank) const {
    uint32_t left = rank.number();
    for (const Block& block : blocks_) {
        const uint32_t here = block.nodes * block.ranks_per_node;
        if (left < here) return block.first_node + left / block.ranks_per_node;
        left -= here;
    }
    fail("rank {} of a placement of {}", rank.number(), ranks_);
}

std::vector<RankRange> Placement::ranks_on(uint32_t node) const {
    std::vector<RankRange> ranges;
    uint32_t first = 0;
    for (const Block& block : blocks_) {
        if (node >= block.first_node && node - block.first_node < block.nodes) {
            const uint32_t begin = first + (node - block.first_node) * block.ranks_per_node;
            if (!ranges.empty() && ranges.back().end() == begin)
                ranges.back() = {ranges.back().first(), ranges.back().count() + block.ranks_per_node};
            else
                ranges.push_back({Rank(begin), block.ranks_per_node});
        }
        first += block.nodes * block.ranks_per_node;
    }
    return ranges;
}

std::vector<uint32_t> Placement::nodes_with_ranks() const {
    std::vector<uint32_t> nodes;
    for (const Block& block : blocks_)
        for (uint32_t i = 0; i < block.nodes; ++i) nodes.push_back(block.first_node + i);
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
}

std::string Placement::mapping() const {
    const std::vector<uint32_t> nodes = nodes_with_ranks();
    std::string text = "(vector";
    for (const Block& block : blocks_)
        text += fmt::format(",({},{},{})",
                            std::lower_bound(nodes.begin(), nodes.end(), block.first_node) - nodes.begin(),
                            block.nodes, block.ranks_per_node);
    return text + ")";
}

}  // namespace fermata::pmi
