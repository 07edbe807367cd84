#include "image/page_cache.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

#include "image/image.h"

namespace fermata::image {

bool page_cache_is_better(int fd) {
    struct statfs s {};
    if (::fstatfs(fd, &s) != 0) return true;
    switch (static_cast<uint32_t>(s.f_type)) {
        case TMPFS_MAGIC:
        case RAMFS_MAGIC:
        case NFS_SUPER_MAGIC:
        case FUSE_SUPER_MAGIC:
        case V9FS_MAGIC:
        case 0x2fc12fc1:  // ZFS, in no header of the kernel's
            return true;
    }
    return false;
}

UncachedFile::UncachedFile(int fd, bool wanted) : cached_(fd) {
    // By its descriptor: the path may be another file by now.
    if (wanted && !page_cache_is_better(fd))
        uncached_ = Fd(::open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
    direct_ = static_cast<bool>(uncached_);
}

uint64_t UncachedFile::read_cached(char* to, uint64_t size, uint64_t offset) const noexcept {
    iovec part{to, size};
    ssize_t n = ::preadv2(cached_, &part, 1, static_cast<off_t>(offset), RWF_NOWAIT);
    return n > 0 ? static_cast<uint64_t>(n) : 0;
}

void UncachedFile::read(char* to, uint64_t size, uint64_t offset, const std::string& name) {
    bool whole = ((reinterpret_cast<uint64_t>(to) | size | offset) & (kPage - 1)) == 0;
    uint64_t got = 0;
    while (whole && direct() && got < size) {
        ssize_t n = ::pread(uncached_.get(), to + got, size - got, static_cast<off_t>(offset + got));
        if (n > 0) {
            got += static_cast<uint64_t>(n);
        } else if (n == 0 || errno != EINTR) {
            // Refused (the storage, or this kind of memory), or something that the plain read says as well.
            if (n < 0 && errno == EINVAL) direct_ = false;
            break;
        }
    }
    if (got < size) pread_all(cached_, to + got, size - got, offset + got, name);
}

}  // namespace fermata::image
