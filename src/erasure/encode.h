// This header makes the parity of one member out of what the others have.
#pragma once

#include <cstdint>
#include <functional>

#include "erasure/group.h"
#include "erasure/source.h"
#include "files/folder.h"

namespace fermata::erasure {

// After each piece, with the bytes that were read for it: the place for a limit on bandwidth, and to give up
// by an exception.
using Between = std::function<void(uint64_t bytes)>;

// Writes the member's file of parity into `to`, the directory of the generation: whole, or not there. Every
// piece is compared with what its owner says of it before it is used. Throws Error.
void write_parity(const Group& group, Member member, Source& source, const files::Folder& to,
                  const Between& between = {});

// A piece of a member's data, with zeros behind its end. False: it is not what the member's contents say.
// Throws Error when it cannot be read.
bool read_data_piece(const Group& group, Member member, uint64_t piece, Source& source, uint8_t* to);

// True if all of this file of the member can be read, and no piece that it has a part in differs from what
// was encoded.
bool is_intact(const Group& group, Member member, size_t file, Source& source);

}  // namespace fermata::erasure
