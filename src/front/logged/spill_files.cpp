#include "front/logged/spill_files.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>

#include "base/page.h"
#include "base/sys.h"
#include "replay/digest.h"

namespace fermata::front::logged {
namespace {

constexpr uint64_t kLeast = uint64_t{64} << 20;  // bytes of a file, while there are few
constexpr int kOffsetBits = 44;                  // of a place: the number of its file stands above
constexpr uint64_t kMostAtOnce = uint64_t{1} << 30;

long write_all(int file, const uint8_t* bytes, size_t size, uint64_t at) noexcept {
    for (size_t done = 0; done < size;) {
        const long n =
            sys(SYS_pwrite64, file, bytes + done, std::min<uint64_t>(size - done, kMostAtOnce), at + done);
        if (n == -EINTR) continue;
        if (n <= 0) return n < 0 ? n : -EIO;
        done += static_cast<size_t>(n);
    }
    return 0;
}

long map(uint8_t* where, uint64_t size, int file) noexcept {
    return sys(SYS_mmap, where, page_up(size), PROT_READ, MAP_PRIVATE | (where != nullptr ? MAP_FIXED : 0),
               file, 0);
}
bool is_error(long result) noexcept { return result < 0 && result > -4096; }

// The kernel says where a file has been cut, in place of a signal.
bool copy_of_own_memory(const uint8_t* from, uint8_t* to, size_t size) noexcept {
    const long self = sys(SYS_getpid);
    for (size_t done = 0; done < size;) {
        const size_t part = std::min<uint64_t>(size - done, kMostAtOnce);
        iovec here{to + done, part}, there{const_cast<uint8_t*>(from) + done, part};
        const long n = sys(SYS_process_vm_readv, self, &here, 1, &there, 1, 0);
        if (n == -EPERM || n == -ENOSYS) {  // a container's filter
            __builtin_memcpy(to + done, from + done, part);
            done += part;
            continue;
        }
        if (n <= 0) return false;
        done += static_cast<size_t>(n);
    }
    return true;
}

}  // namespace

uint64_t SpillFiles::digest_of(const uint8_t* bytes, size_t size) noexcept {
    return XXH3_64bits(bytes, size);
}

SpillFiles::File* SpillFiles::find(uint64_t place) noexcept {
    for (File& file : files_)
        if (file.number == place >> kOffsetBits) return &file;
    return nullptr;
}

void SpillFiles::drop(File* file) noexcept {
    if (file->descriptor >= 0) sys(SYS_close, file->descriptor);
    if (file->at != nullptr) sys(SYS_munmap, file->at, page_up(file->size));
    files_.erase(files_.begin() + (file - files_.data()));
}

long SpillFiles::append(Make make, const uint8_t* bytes, size_t size, uint64_t* place) noexcept {
    uint64_t all = 0;
    for (const File& file : files_) all += file.size;
    // Some dozens of files, however much there is.
    if (is_open() && files_.back().size + size > std::max(kLeast, all / 16) && !close()) return -ENOMEM;
    if (!is_open()) {
        const int made = make();
        if (made < 0) return made;
        files_.push_back(File{.number = made_++, .descriptor = made});
    }
    File& file = files_.back();
    if (const long error = write_all(file.descriptor, bytes, size, file.size); error != 0) {
        if (file.needed == 0) drop(&file);
        return error;
    }
    *place = file.number << kOffsetBits | file.size;
    file.size += size;
    file.needed += size;
    return 0;
}

void SpillFiles::forget(const replay::Spilled& what) noexcept {
    File* file = find(what.place);
    if (file == nullptr) return;
    file->needed -= what.size;
    if (file->needed == 0) drop(file);
}

bool SpillFiles::read(const replay::Spilled& what, replay::Bytes* bytes) noexcept {
    if (!close()) return false;
    const File* file = find(what.place);
    const uint64_t begin = what.place & ((uint64_t{1} << kOffsetBits) - 1);
    if (file == nullptr || begin + what.size > file->size) return false;
    bytes->resize(what.size);
    return copy_of_own_memory(file->at + begin, bytes->data(), what.size) &&
           digest_of(bytes->data(), what.size) == what.digest;
}

bool SpillFiles::close() noexcept {
    if (!is_open()) return true;
    File& file = files_.back();
    const long at = map(nullptr, file.size, file.descriptor);
    if (is_error(at)) return false;
    file.at = reinterpret_cast<uint8_t*>(at);
    sys(SYS_close, file.descriptor);
    file.descriptor = -1;
    return true;
}

long SpillFiles::leave_memory(Make make) noexcept {
    for (File& file : files_) {
        if (file.at == nullptr) continue;
        // EINVAL: there is no file behind it; EACCES: it may only be read.
        if (sys(SYS_madvise, file.at, page_up(file.size), MADV_REMOVE) != -EINVAL) continue;
        const int made = make();
        if (made < 0) return made;
        long error = write_all(made, file.at, file.size, 0);
        if (error == 0 && is_error(error = map(file.at, file.size, made)) == false) error = 0;
        sys(SYS_close, made);
        if (error != 0) return error;
    }
    return 0;
}

}  // namespace fermata::front::logged
