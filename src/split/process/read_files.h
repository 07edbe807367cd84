// Files that the program only reads: what a checkpoint notes of each that is open, and what a restart finds.
//
// The program stands somewhere in the file, so another content would go on at a wrong place. Small files are
// compared whole, and their content lies in the generation's directory (files.h, how "read"); of large ones
// the beginning, the end and what lies before the program's place are compared.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "files/folder.h"
#include "split/process/parts.h"

namespace fermata::split::process {

// Larger ones are not kept: every checkpoint would read them.
inline constexpr int64_t kLargestRead = 8 << 20;

// Paths that are no content of anybody's: /proc, /sys, /dev.
bool is_of_the_kernel(const std::string& path);
// These, and what the system's services keep for themselves (sssd's caches, open in every program that asks
// for a user's name): other files on every node, and other ones tomorrow.
bool is_of_the_system(const std::string& path, const struct stat& status);

// Describes what `fd`, readable, has now; the program stands at `position`. `name` is that of its copy, if
// there will be one. Null: it cannot be read.
Json describe_read(int fd, const struct stat& status, int64_t position, const std::string& name);

enum class Content {
    same,
    grown,    // what was there is there, and more behind it
    alike,    // a large file with another time: what was looked at is the same
    changed,  //
};
Content compare_read(const Json& noted, int fd);

// Opens the old content again, without a name; none: it was not kept, or the copy is damaged.
Fd open_kept(const Reading& reading, const Json& noted, const std::string& path);

}  // namespace fermata::split::process
