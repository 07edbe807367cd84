#include "split/process/descriptors/entry.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "split/process/parts.h"
#include "split/threads/raw.h"

namespace fermata::split::process::descriptors {

bool Entry::is_anonymous(std::string_view name) const {
    constexpr std::string_view kInode = "anon_inode:";
    return link.starts_with(kInode) && std::string_view(link).substr(kInode.size()) == name;
}

std::string Entry::who() const { return "descriptor " + std::to_string(fd); }

std::vector<int> open_descriptors(int limit) {
    std::vector<int> found;
    int fd = static_cast<int>(
        raw::call(SYS_openat, AT_FDCWD, raw::word("/proc/self/fd"), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) return found;
    alignas(8) char buffer[8192];
    for (long size; (size = raw::call(SYS_getdents64, fd, raw::word(buffer), sizeof buffer)) > 0;) {
        for (long at = 0; at < size;) {
            // struct linux_dirent64: u64 ino, s64 off, u16 length, u8 type, name
            uint16_t length;
            std::memcpy(&length, buffer + at + 16, sizeof length);
            const char* name = buffer + at + 19;
            int number = std::atoi(name);
            if (name[0] != '.' && number != fd && number < limit) found.push_back(number);
            at += length;
        }
    }
    raw::call(SYS_close, fd);
    std::sort(found.begin(), found.end());
    return found;
}

Entry look_at(int fd) {
    Entry entry;
    if (fstat(fd, &entry.status) != 0) return entry;
    entry.fd = fd;
    std::string self = "/proc/self/fd/" + std::to_string(fd);
    std::string link(4096, 0);
    ssize_t size = readlink(self.c_str(), link.data(), link.size());
    link.resize(size > 0 ? static_cast<size_t>(size) : 0);
    entry.link = link;
    entry.info = read_proc("/proc/self/fdinfo/" + std::to_string(fd));
    entry.flags = fcntl(fd, F_GETFL);
    entry.close_on_exec = (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
    return entry;
}

bool is_readable(int flags) { return (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_WRONLY; }
bool is_writable(int flags) { return (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY; }

std::string without_deleted(std::string path) {
    constexpr std::string_view kDeleted = " (deleted)";
    if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
    return path;
}

}  // namespace fermata::split::process::descriptors
