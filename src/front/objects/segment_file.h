// The file in /dev/shm by which the members of a shared segment find its pages (shared_segment.h).
//
// Its name is there for a moment only, but others may put files into /dev/shm: whoever opens it by name gets
// the file that was made, or none.
#pragma once

#include <cstdint>

namespace fermata::front {

// As the maker tells the others.
struct SegmentFile {
    uint64_t number = 0;  // in its name
    uint64_t device = 0, inode = 0;
};

// All of these return an MPI error class. `start`: the mapped pages.
int segment_file_make(SegmentFile* file, int64_t length, char** start) noexcept;
int segment_file_map(const SegmentFile& file, int64_t length, char** start) noexcept;
void segment_file_unname(const SegmentFile& file) noexcept;

}  // namespace fermata::front
