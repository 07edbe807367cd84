#include "base/fd.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/error.h"

namespace fermata {

Fd open_file(const std::string& path, int flags, mode_t mode) {
    int fd;
    do fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) fail_errno("cannot open {}", path);
    return Fd(fd);
}

void write_all(int fd, const void* data, size_t size, const std::string& path) {
    auto* at = static_cast<const char*>(data);
    while (size > 0) {
        ssize_t n = ::write(fd, at, size);
        if (n < 0) {
            if (errno == EINTR) continue;
            fail_errno("cannot write {}", path);
        }
        at += n;
        size -= static_cast<size_t>(n);
    }
}

void pwrite_all(int fd, const void* data, size_t size, uint64_t offset, const std::string& path) {
    auto* at = static_cast<const char*>(data);
    while (size > 0) {
        ssize_t n = ::pwrite(fd, at, size, static_cast<off_t>(offset));
        if (n < 0) {
            if (errno == EINTR) continue;
            fail_errno("cannot write {} at offset {}", path, offset);
        }
        at += n;
        offset += static_cast<uint64_t>(n);
        size -= static_cast<size_t>(n);
    }
}

void pread_all(int fd, void* data, size_t size, uint64_t offset, const std::string& path) {
    auto* at = static_cast<char*>(data);
    while (size > 0) {
        ssize_t n = ::pread(fd, at, size, static_cast<off_t>(offset));
        if (n < 0) {
            if (errno == EINTR) continue;
            fail_errno("cannot read {} at offset {}", path, offset);
        }
        if (n == 0) fail("{} is truncated: it ends at offset {}, {} bytes are missing", path, offset, size);
        at += n;
        offset += static_cast<uint64_t>(n);
        size -= static_cast<size_t>(n);
    }
}

std::string file_id(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return {};
    return fmt::format("{}:{}", status.st_dev, status.st_ino);
}

std::string read_rest(int fd, const std::string& path, uint64_t most) {
    std::string content;
    char buffer[16384];
    for (;;) {
        ssize_t n = ::read(fd, buffer, sizeof buffer);
        if (n < 0) {
            if (errno == EINTR) continue;
            fail_errno("cannot read {}", path);
        }
        if (n == 0) return content;
        if (static_cast<uint64_t>(n) > most - content.size())
            fail("{} is longer than {} bytes: not one of ours", path, most);
        content.append(buffer, static_cast<size_t>(n));
    }
}

std::string read_file(const std::string& path) { return read_rest(open_file(path, O_RDONLY).get(), path); }

void sync_file(int fd, const std::string& path) {
    if (::fsync(fd) != 0) fail_errno("cannot bring {} to storage", path);
}

}  // namespace fermata
