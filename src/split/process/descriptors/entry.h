// This header reads the kernel's facts about an open descriptor.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

namespace fermata::split::process::descriptors {

struct Entry {
    int fd = -1;
    struct stat status = {};
    std::string link;  // of /proc/self/fd
    std::string info;  // fdinfo
    int flags = 0;     // F_GETFL
    bool close_on_exec = false;
    size_t description = 0;  // which of the open file descriptions it is

    bool is(mode_t kind) const { return (status.st_mode & S_IFMT) == kind; }
    bool is_anonymous(std::string_view name) const;  // "anon_inode:" + name
    std::string who() const;                         // "descriptor 5", for people
};

// Numbers below `limit`, in order.
std::vector<int> open_descriptors(int limit);
// `fd` is -1 when it has gone.
Entry look_at(int fd);

// True if it may be read, or written, by F_GETFL; what is open for its path only (O_PATH) is neither.
bool is_readable(int flags);
bool is_writable(int flags);
std::string without_deleted(std::string path);

}  // namespace fermata::split::process::descriptors
