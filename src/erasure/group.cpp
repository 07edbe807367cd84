#include "erasure/group.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/invariant.h"
#include "image/format.h"

namespace fermata::erasure {

Group::Group(Layout layout, std::vector<Contents> members) : layout_(layout), members_(std::move(members)) {
    always(members_.size() == layout_.members(), "a group of another number of members");
    uint64_t largest = 0;
    for (const Contents& one : members_) largest = std::max(largest, one.bytes());
    const uint64_t pieces = (largest + kPiece - 1) / kPiece;
    chunk_ = (pieces + layout_.data() - 1) / layout_.data() * kPiece;
    always(chunk_ % kPiece == 0 && chunk_ * layout_.data() >= largest,
           "chunks that do not hold what is there");
    const std::vector<std::byte> bytes = to_bytes();
    name_ = image::checksum_of(bytes.data(), bytes.size());
}

Group Group::of(std::vector<Contents> members, uint32_t losses) {
    const auto count = static_cast<uint32_t>(std::min<size_t>(members.size(), UINT32_MAX));
    const auto layout = Layout::of(count, losses);
    if (!layout) fail("a group of {} members cannot bear {} losses", members.size(), losses);
    std::set<std::string> hosts;
    for (const Contents& one : members) {
        if (one.job != members[0].job || one.generation != members[0].generation)
            fail("{} and {} have no generation in common", members[0].host, one.host);
        if (!hosts.insert(one.host).second) fail("{} is twice in one group", one.host);
    }
    return {*layout, std::move(members)};
}

std::vector<std::byte> Group::to_bytes() const {
    image::Packer out;
    out.value(layout_.losses());
    out.value(layout_.members());
    for (const Contents& one : members_) {
        const std::vector<std::byte> bytes = one.to_bytes();
        out.sized(bytes.data(), bytes.size());
    }
    return std::move(out.out);
}

Group Group::parse(const std::vector<std::byte>& bytes, const std::string& path) {
    image::Unpacker in(bytes, path);
    const auto losses = in.value<uint32_t>();
    const auto count = in.value<uint32_t>();
    if (!Layout::of(count, losses)) fail("{} is damaged: an impossible group", path);
    std::vector<Contents> members;
    for (uint32_t i = 0; i < count; ++i) {
        const auto size = in.value<uint64_t>();
        const std::byte* const begin = in.take(size);
        members.push_back(Contents::parse({begin, begin + size}, path));
    }
    if (!in.at_end()) fail("{} is damaged: it goes on after its end", path);
    try {
        return of(std::move(members), losses);
    } catch (const Error& error) {
        fail("{} is damaged: {}", path, error.what());
    }
}

}  // namespace fermata::erasure
