#include "base/fd.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

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

std::string read_file(const std::string& path) {
    Fd fd = open_file(path, O_RDONLY);
    std::string content;
    char buffer[16384];
    for (;;) {
        ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
        if (n < 0) {
            if (errno == EINTR) continue;
            fail_errno("cannot read {}", path);
        }
        if (n == 0) return content;
        content.append(buffer, static_cast<size_t>(n));
    }
}

void sync_file(int fd, const std::string& path) {
    if (::fsync(fd) != 0) fail_errno("cannot bring {} to storage", path);
}

void sync_directory(const std::string& path) {
    Fd fd = open_file(path, O_RDONLY | O_DIRECTORY);
    // Some file systems have no directory sync (EINVAL); there the rename is as safe as it can be.
    if (::fsync(fd.get()) != 0 && errno != EINVAL) fail_errno("cannot bring directory {} to storage", path);
}

void replace_file(const std::string& path, const std::string& content) {
    std::string temporary = path + ".new";
    {
        Fd fd = open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        write_all(fd.get(), content.data(), content.size(), temporary);
        sync_file(fd.get(), temporary);
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail_errno("cannot rename {} to {}", temporary, path);
    auto slash = path.rfind('/');
    sync_directory(slash == std::string::npos ? "." : path.substr(0, slash == 0 ? 1 : slash));
}

void make_directories(const std::string& path) {
    for (size_t at = 0; at != std::string::npos;) {
        at = path.find('/', at + 1);
        std::string part = path.substr(0, at);
        if (part.empty() || part == ".") continue;
        if (::mkdir(part.c_str(), 0700) == 0) {
            // Without this a power cut may take what is later committed below it.
            auto slash = part.rfind('/');
            sync_directory(slash == std::string::npos ? "." : slash == 0 ? "/" : part.substr(0, slash));
        } else if (errno != EEXIST) {
            int code = errno;
            std::error_code ignored;
            if (std::filesystem::is_directory(part, ignored))
                continue;  // EROFS and the like on existing parents
            errno = code;
            fail_errno("cannot create directory {}", part);
        }
    }
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) fail("cannot create directory {}: it is a file", path);
}

}  // namespace fermata
