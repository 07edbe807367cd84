// Work of files.cpp and put_back.cpp on single files: read, compare, copy, cut.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "files/place.h"

namespace fermata::split::process {

// For reading: a regular file, without a trace where that is allowed.
files::Opened open_to_look(const std::string& path);
// A regular file that is no link, whatever our own file's permissions say; and one that was not there; none:
// errno tells why.
files::Opened open_itself(const std::string& path, int flags);
Fd make_new(const std::string& path, mode_t mode);

// xxh3-128 of [at, at + size) as hex; "" when it cannot be read or ends before.
std::string sum_of(int fd, int64_t at, int64_t size);
std::string sum_of_text(const std::string& text);

// Describes what tells one version of a file from another: size, inode, mode, owner, times, and whether those
// are old enough to be believed ("settled"). The others ask whether the file is as such a description has it.
nlohmann::json describe_status(const struct stat& status);
bool same_time(const nlohmann::json& saved, const timespec& now);
bool is_untouched(const nlohmann::json& saved, const struct stat& now);
// Names the copy of this version, 32 hex digits: the same for every rank that sees the file, whatever its
// node calls the device. Others' files of the same path (on disks of other nodes) differ.
std::string name_of_copy(const std::string& path, const struct stat& status);

// The kernel makes both share their blocks; false where the file system cannot.
bool clone_file(int from, int to);
// Copies [at, at + size) to where `to` stands; false with errno. `sum` (may be null) is that of what was
// read.
bool copy_file(int from, int64_t at, int64_t size, int to, std::string* sum);

// A name beside `path` that is not taken: path + "." + what, or the same with a number.
std::string name_beside(const std::string& path, const std::string& what);

// Cuts `path` back to `size` bytes; what is cut off is in the new file `aside`. "" or what failed (the file
// is untouched then).
std::string cut_back(const std::string& path, int64_t size, const std::string& aside);

bool sync_parent(const std::string& path);

}  // namespace fermata::split::process
