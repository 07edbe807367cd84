// Files that the program of a copy both reads and writes, or appends to: while it follows they are *shadows*
// in memory that have all bytes of the file. In upper memory: a new lower half finds here what the shadows
// stand for (front/posix/private_files.h, lower/private_files.h).
#pragma once

#include <limits.h>

#include <cstdint>

namespace fermata::split {

struct PrivateFile {
    uint64_t data_device, data_inode;  // of the shadow; 0: the entry is free
    uint64_t device, inode;            // of the file
    int64_t begins;                    // what is before it stands in the file alone
    char path[PATH_MAX];               // "": the file has no name, nobody will read it
};

struct PrivateFiles {
    static constexpr uint32_t kMost = 32;
    PrivateFile files[kMost];
};

// A wish for the shadow of a file that the program of a copy opens now.
struct PrivateWish {
    const char* path;        // from the root
    uint64_t device, inode;  // of the file
    int64_t size;            // when the rank opened it
    const void* bytes;       // null: those of the file itself, or none for a program that only appends
    bool appends;
};

}  // namespace fermata::split
