#include "image/memory_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include <algorithm>

#include "base/sys.h"
#include "image/image.h"

namespace fermata::image {

bool PagePlacer::open(int file) noexcept {
    struct statfs s {};
    if (failed(sys(SYS_fstatfs, file, &s)) || s.f_type != TMPFS_MAGIC) return false;
    // What any user may: faults are never answered here, since nobody touches the mapping.
    long faults = sys(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (failed(faults)) return false;
    uffdio_api api{UFFD_API, 0, 0};
    if (failed(sys(SYS_ioctl, faults, UFFDIO_API, &api))) {
        sys(SYS_close, faults);
        return false;
    }
    file_ = file;
    faults_ = static_cast<int>(faults);
    return true;
}

void PagePlacer::close() noexcept {
    if (faults_ >= 0) sys(SYS_close, faults_);
    faults_ = -1;
}

bool FileWindow::look_at(const PagePlacer& placer, uint64_t begin) noexcept {
    leave();
    // Over what was there: no other thread can get the place meanwhile.
    if (failed(sys(SYS_mmap, memory_, kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, placer.file_,
                   begin)))
        return false;
    uffdio_register all{{reinterpret_cast<uint64_t>(memory_), kSize}, UFFDIO_REGISTER_MODE_MISSING, 0};
    begin_ = begin;
    if (!failed(sys(SYS_ioctl, placer.faults_, UFFDIO_REGISTER, &all)) &&
        (all.ioctls & (1ull << _UFFDIO_COPY)))
        return true;
    leave();
    return false;
}

bool FileWindow::put(const PagePlacer& placer, const char* data, uint64_t size, uint64_t at) noexcept {
    if (!placer || (size | at) % kPage) return false;
    while (size > 0) {
        uint64_t begin = at / kSize * kSize, n = std::min(size, begin + kSize - at);
        if (begin_ != begin && !look_at(placer, begin)) return false;
        uffdio_copy copy{reinterpret_cast<uint64_t>(memory_) + (at - begin), reinterpret_cast<uint64_t>(data),
                         n, UFFDIO_COPY_MODE_DONTWAKE, 0};
        if (failed(sys(SYS_ioctl, placer.faults_, UFFDIO_COPY, &copy))) {
            if (copy.copy <= 0) return false;
            n = static_cast<uint64_t>(copy.copy);  // interrupted
        }
        data += n;
        at += n;
        size -= n;
    }
    return true;
}

void FileWindow::leave() noexcept {
    if (begin_ == UINT64_MAX) return;
    sys(SYS_mmap, memory_, kSize, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    begin_ = UINT64_MAX;
}

}  // namespace fermata::image
