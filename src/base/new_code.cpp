#include "base/new_code.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "base/error.h"
#include "base/fd.h"
#include "base/page.h"

namespace fermata {
namespace {

// 0, or the error of the first step that is refused.
int tried(int fd, int protection, std::initializer_list<int> steps) {
    const int flags = MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0);
    void* page = ::mmap(nullptr, kPage, protection, flags, fd, 0);
    if (page == MAP_FAILED) return errno;
    int refused = 0;
    for (int step : steps) {
        if (refused == 0 && ::mprotect(page, kPage, step) != 0) refused = errno;
        // This makes a page of a file another thing than a mapping that the kernel knows to be code.
        if (refused == 0 && (step & PROT_WRITE) != 0) *static_cast<volatile char*>(page) = 0;
    }
    ::munmap(page, kPage);
    return refused;
}

}  // namespace

std::string why_no_new_code() {
    constexpr int kReadable = PROT_READ, kCode = PROT_READ | PROT_EXEC, kOpen = kCode | PROT_WRITE;
    int refused = tried(-1, kReadable | PROT_WRITE, {kCode});  // new code
    const Fd self(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    if (refused == 0 && self) refused = tried(self.get(), kCode, {kOpen, kCode});  // code of a library
    if (refused == 0) return {};
    return fmt::format(
        "no memory may become code here (mprotect: {}), and Fermata changes that of libraries in memory: "
        "SELinux's deny_execmem, systemd's MemoryDenyWriteExecute and the like have to be off for it",
        std::strerror(refused));
}

}  // namespace fermata
