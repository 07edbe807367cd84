#include "split/alloc/shared_names.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "split/address/raw.h"
#include "split/fds/descriptors.h"

namespace fermata::split {
namespace {

constexpr char kMemory[] = "/dev/shm/";
constexpr size_t kPrefix = sizeof kMemory - 1;
constexpr size_t kLongest = 255;  // of a name

int notes = -1;
time_t begun;

// The newest: many map a file more than once.
constexpr size_t kKnown = 64;
struct Known {
    dev_t device;
    ino_t inode;
} known[kKnown];
size_t known_count;
SpinLock lock;

bool is_known(const struct stat& file) noexcept {
    lock.lock();
    bool found = false;
    for (const Known& one : known) found = found || (one.device == file.st_dev && one.inode == file.st_ino);
    if (!found) known[known_count++ % kKnown] = {file.st_dev, file.st_ino};
    lock.unlock();
    return found;
}

// Written backwards from `end`; its first digit.
char* number_before(char* end, uint64_t number) noexcept {
    do *--end = static_cast<char>('0' + number % 10);
    while (number /= 10);
    return end;
}

}  // namespace

void note_shared_names_in(const char* path) noexcept {
    long fd = sys(SYS_openat, AT_FDCWD, path,
                  O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (failed(fd)) return;
    timespec now{};
    sys(SYS_clock_gettime, CLOCK_REALTIME, &now);
    begun = now.tv_sec - 1;  // files have the time of the last tick
    notes = raise_descriptor(static_cast<int>(fd));
}

void note_shared_mapping(int fd) noexcept {
    if (notes < 0) return;
    // Older ones are another job's, whom this one has connected to, or a person's.
    struct stat file {};
    if (failed(sys(SYS_fstat, fd, &file)) || !S_ISREG(file.st_mode) || file.st_nlink == 0 ||
        file.st_ctim.tv_sec < begun || is_known(file))
        return;
    char link[32] = "/proc/self/fd/", digits[24];
    char* last = digits + sizeof digits;
    char* first = number_before(last, static_cast<uint64_t>(fd));
    std::memcpy(link + 14, first, static_cast<size_t>(last - first));
    char line[64 + kPrefix + kLongest + 2];
    char* target = line + 64;
    long length = sys(SYS_readlink, link, target, kPrefix + kLongest + 1);
    if (failed(length) || static_cast<size_t>(length) <= kPrefix ||
        static_cast<size_t>(length) > kPrefix + kLongest || std::memcmp(target, kMemory, kPrefix) != 0)
        return;
    char* name = target + kPrefix;
    const size_t size = static_cast<size_t>(length) - kPrefix;
    if (std::memchr(name, '/', size) || std::memchr(name, '\n', size)) return;
    name[size] = '\n';
    char* begin = name;
    *--begin = ' ';
    begin = number_before(begin, file.st_ino);
    *--begin = ' ';
    begin = number_before(begin, file.st_dev);
    sys(SYS_write, notes, begin, static_cast<size_t>(name + size + 1 - begin));
}

}  // namespace fermata::split
