// Fd owns a file descriptor; the functions beside it read and write whole files. Every function throws Error
// with the path in its line.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace fermata {

// Owns a descriptor; -1 is "none".
class Fd {
  public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        if (this != &other) {
            reset();
            fd_ = std::exchange(other.fd_, -1);
        }
        return *this;
    }
    Fd(const Fd&) = delete;
    Fd& operator=(const Fd&) = delete;
    ~Fd() { reset(); }

    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }
    int release() { return std::exchange(fd_, -1); }
    void reset() {
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }

  private:
    int fd_ = -1;
};

Fd open_file(const std::string& path, int flags, mode_t mode = 0600);
// Writes or reads exactly `size` bytes; a short read is an error that gives the offset.
void write_all(int fd, const void* data, size_t size, const std::string& path);
void pwrite_all(int fd, const void* data, size_t size, uint64_t offset, const std::string& path);
void pread_all(int fd, void* data, size_t size, uint64_t offset, const std::string& path);
// Reads from where `fd` stands to its end; a text of more than `most` bytes is an error.
std::string read_rest(int fd, const std::string& path, uint64_t most = UINT64_MAX);
std::string read_file(const std::string& path);
// "DEVICE:INODE" of what has this name on this node; empty when there is nothing.
std::string file_id(const std::string& path);
void sync_file(int fd, const std::string& path);

}  // namespace fermata
