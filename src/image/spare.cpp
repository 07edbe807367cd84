#include "image/spare.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/page.h"
#include "files/move.h"
#include "image/memory_file.h"

namespace fermata::image {
namespace {

// Larger ones would have to be cut by much while the ranks stand.
constexpr uint64_t kMostTooLarge = 2;

// A lease for writing is given only where nobody else has the file open or mapped (Linux 5.3,
// fs/locks.c: check_conflicting_open()).
bool nobody_has(int file) noexcept {
    return ::fcntl(file, F_SETLEASE, F_WRLCK) == 0 && ::fcntl(file, F_SETLEASE, F_UNLCK) == 0;
}

}  // namespace

std::optional<Fd> take_spare(const files::Folder& to, const std::string& name, const std::string& spare,
                             uint64_t bytes) noexcept {
    try {
        const auto folder = to.find_beside(kSpareFolder);
        if (!folder || folder->owner() != ::geteuid()) return {};
        const auto size = folder->size_of(spare);
        if (!size || *size / kMostTooLarge > bytes) return {};
        Fd file = folder->write(spare);
        struct stat status {};
        if (::fstat(file.get(), &status) != 0 || status.st_nlink != 1 || !MemoryFile::is_one(file.get()))
            return {};
        if (!nobody_has(file.get())) {
            folder->remove_file(spare);  // the pages go when whoever has it lets go
            return {};
        }
        // Without a header it is no image, wherever writing may end.
        static const char kNothing[kPage] = {};
        if (::pwrite(file.get(), kNothing, sizeof kNothing, 0) != ssize_t(sizeof kNothing)) return {};
        if (!files::move(*folder, spare, to, name)) return {};
        return file;
    } catch (const std::exception&) {
        return {};
    }
}

}  // namespace fermata::image
