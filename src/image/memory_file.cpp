#include "image/memory_file.h"

#include <emmintrin.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/sys.h"
#include "image/image.h"

namespace fermata::image {
namespace {

// With less a file is not worth the while.
constexpr uint64_t kLeast = FileWindow::kSize;
// The longest time for a huge page. Usually a third of a millisecond, 12 where a virtual machine's host has
// to find the memory first, as for small pages; more only where the kernel moves others again and again to
// make room.
constexpr uint64_t kPatience_ns = 50'000'000;

uint64_t own_time_ns() noexcept {
    timespec t{};
    sys(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// Opens a userfaultfd as any user may: faults are never answered here, since nobody touches a mapping that is
// watched.
int watcher() noexcept {
    long faults = sys(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (failed(faults)) return -1;
    uffdio_api api{UFFD_API, 0, 0};
    if (!failed(sys(SYS_ioctl, faults, UFFDIO_API, &api))) return static_cast<int>(faults);
    sys(SYS_close, faults);
    return -1;
}

// Whole pages. Intel's processors read a line first that is only written; stores past their caches do not.
// AMD's are faster without (docs/internals/images.md).
void copy_pages(char* to, const char* from, uint64_t size) noexcept {
    if (!__builtin_cpu_is("intel")) {
        std::memcpy(to, from, size);
        return;
    }
    for (uint64_t at = 0; at < size; at += 64) {
        auto* source = reinterpret_cast<const __m128i*>(from + at);
        auto* line = reinterpret_cast<__m128i*>(to + at);
        __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1), c = _mm_loadu_si128(source + 2),
                d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(line, a);
        _mm_stream_si128(line + 1, b);
        _mm_stream_si128(line + 2, c);
        _mm_stream_si128(line + 3, d);
    }
    _mm_sfence();
}

}  // namespace

bool MemoryFile::is_one(int file) noexcept {
    struct statfs s {};
    return !failed(sys(SYS_fstatfs, file, &s)) && s.f_type == TMPFS_MAGIC;
}

bool MemoryFile::open(int file, bool shared, uint64_t begin, uint64_t end) noexcept {
    if (!is_one(file)) return false;
    file_ = file;
    begin_ = begin;
    end_ = end;
    huge_limit_ = end / kHugePageSize * kHugePageSize;
    huge_end_ = ahead_ = begin;
    huge_ = begin % kHugePageSize == 0 && huge_limit_ >= begin + kLeast && make_long(shared);
    if (shared) faults_ = watcher();
    if (!huge_ && faults_ < 0) close();
    return file_ >= 0;
}

// A mapping has no pages behind the end of a file.
bool MemoryFile::make_long(bool shared) noexcept {
    struct stat st {};
    if (failed(sys(SYS_fstat, file_, &st))) return false;
    if (static_cast<uint64_t>(st.st_size) >= huge_limit_) return true;
    rlimit limit{};  // whose signal would come for a file that need not become so long
    if (shared || failed(sys(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit)) ||
        limit.rlim_cur < huge_limit_ || failed(sys(SYS_ftruncate, file_, huge_limit_)))
        return false;
    ahead_ = huge_limit_;
    return true;
}

void MemoryFile::close() noexcept {
    if (faults_ >= 0) sys(SYS_close, faults_);
    file_ = faults_ = -1;
}

// Window by window, each before anything is written there: the kernel need not copy, nor wait for anybody.
void MemoryFile::prepare(FileWindow& window, uint64_t end) noexcept {
    end = std::min(end, huge_limit_);
    if (!huge_ || huge_end_ >= end) return;
    lock_.lock();
    while (huge_ && huge_end_ < end) {
        uint64_t begin = huge_end_, size = std::min(FileWindow::kSize, huge_limit_ - begin);
        ahead_ = std::max(ahead_, begin + size);  // a part of it may be made, even if not all is
        if (window.look_at(*this, begin) && window.make_huge(size))
            huge_end_ = begin + size;
        else
            huge_ = false;
    }
    lock_.unlock();
}

bool FileWindow::look_at(const MemoryFile& file, uint64_t begin) noexcept {
    if (begin_ == begin) return true;
    leave();
    // Over what was there: no other thread can get the place meanwhile. Not further than our part: the kernel
    // makes no huge pages where anybody watches for missing ones.
    uint64_t size = std::min(kSize, file.end_ - begin);
    if (failed(
            sys(SYS_mmap, memory_, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.file_, begin)))
        return false;
    begin_ = begin;
    end_ = begin + size;
    return true;
}

// One page each must be there (and is made, or left as it is); the kernel adds zeros.
bool FileWindow::make_huge(uint64_t size) noexcept {
    uint64_t before = own_time_ns();
    for (uint64_t at = 0; at < size; at += kHugePageSize)
        if (failed(sys(SYS_madvise, memory_ + at, kPage, MADV_POPULATE_WRITE))) return false;
    long result = -EAGAIN;
    for (int i = 0; i < 3 && result == -EAGAIN; ++i)  // a page that was just being looked at
        result = sys(SYS_madvise, memory_, size, kCollapse);
    return !failed(result) && own_time_ns() - before <= size / kHugePageSize * kPatience_ns;
}

bool FileWindow::watch(const MemoryFile& file) noexcept {
    if (watched_) return true;
    if (file.faults_ < 0) return false;
    uffdio_register all{
        {reinterpret_cast<uint64_t>(memory_), end_ - begin_}, UFFDIO_REGISTER_MODE_MISSING, 0};
    watched_ =
        !failed(sys(SYS_ioctl, file.faults_, UFFDIO_REGISTER, &all)) && (all.ioctls & (1ull << _UFFDIO_COPY));
    return watched_;
}

bool FileWindow::enter(MemoryFile& file, uint64_t begin) noexcept {
    file.prepare(*this, begin + kSize);
    huge_end_ = file.huge_end_.load();
    return (huge_end_ > begin || file.faults_ >= 0) && look_at(file, begin);
}

bool FileWindow::put(MemoryFile& file, const char* data, uint64_t size, uint64_t at) noexcept {
    if (!file || (size | at) % kPage || at < file.begin_ || at + size > file.end_) return false;
    while (size > 0) {
        uint64_t begin = at - (at - file.begin_) % kSize, n = std::min(size, begin + kSize - at);
        if (begin_ != begin && !enter(file, begin)) return false;
        char* to = memory_ + (at - begin);
        if (at + n <= huge_end_) {
            copy_pages(to, data, n);
        } else {
            if (!watch(file)) return false;
            uffdio_copy copy{reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(data), n,
                             UFFDIO_COPY_MODE_DONTWAKE, 0};
            if (failed(sys(SYS_ioctl, file.faults_, UFFDIO_COPY, &copy))) {
                if (copy.copy <= 0) return false;
                n = static_cast<uint64_t>(copy.copy);  // interrupted
            }
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
    watched_ = false;
}

}  // namespace fermata::image
