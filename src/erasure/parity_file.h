// ParityHead is the beginning of a file of parity, before its chunks: of which group it is, whose, and a
// checksum of each piece that follows (docs/formats/parity.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "erasure/group.h"
#include "erasure/names.h"

namespace fermata::erasure {

class ParityHead {
  public:
    // `pieces`: of the parity, row after row.
    ParityHead(Group group, Member member, std::vector<image::Checksum> pieces);

    // Bytes that have to be read to know how long the head is.
    static constexpr uint64_t kPreamble = 24;
    // Throws Error, as parse().
    static uint64_t size(const std::vector<std::byte>& preamble, const std::string& path);
    static ParityHead parse(const std::vector<std::byte>& bytes, const std::string& path);
    std::vector<std::byte> to_bytes() const;

    const Group& group() const { return group_; }
    Member member() const { return member_; }
    const image::Checksum& checksum(uint32_t row, uint64_t piece) const {
        return pieces_.at(row * group_.pieces_of_chunk() + piece);
    }
    // Where a piece of parity lies in the file.
    uint64_t offset_of(uint32_t row, uint64_t piece) const;
    uint64_t file_bytes() const { return data_ + group_.parity_bytes(); }

  private:
    Group group_;
    Member member_;
    std::vector<image::Checksum> pieces_;
    uint64_t data_ = 0;  // where the parity begins
};

// The head of the file in this folder, whose length is compared, too. Throws Error.
ParityHead read_parity_head(const files::Folder& generation_folder);

}  // namespace fermata::erasure
