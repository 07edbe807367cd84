// Group is a generation as several nodes have it together: the contents of each, and how chunks of parity lie
// over them. A Group is the same on all members, and known by its name, a checksum of all it says.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "erasure/contents.h"
#include "erasure/layout.h"
#include "image/checksum.h"

namespace fermata::erasure {

class Group {
  public:
    // Throws Error unless they are of one generation of one job, of different hosts, and more than `losses`.
    static Group of(std::vector<Contents> members, uint32_t losses);

    const Layout& layout() const { return layout_; }
    uint64_t job() const { return members_.front().job; }
    Generation generation() const { return members_.front().generation; }
    const std::vector<Contents>& members() const { return members_; }
    const Contents& contents(Member member) const { return members_.at(number(member)); }
    // Size of all chunks: the largest member's data cut into equal chunks of whole pieces. Beyond their data
    // members have zeros.
    uint64_t chunk() const { return chunk_; }
    uint64_t pieces_of_chunk() const { return chunk_ / kPiece; }
    uint64_t parity_bytes() const { return chunk_ * layout_.losses(); }
    const image::Checksum& name() const { return name_; }

    std::vector<std::byte> to_bytes() const;
    static Group parse(const std::vector<std::byte>& bytes, const std::string& path);

  private:
    Group(Layout layout, std::vector<Contents> members);
    Layout layout_;
    std::vector<Contents> members_;
    uint64_t chunk_ = 0;
    image::Checksum name_;
};

}  // namespace fermata::erasure
