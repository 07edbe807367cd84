#include "lower/program_descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "split/fds/descriptors.h"

namespace fermata::lower {

std::vector<int> programs_descriptors() {
    std::vector<int> all;
    DIR* folder = ::opendir("/proc/self/fd");
    if (folder == nullptr) fail_errno("cannot read /proc/self/fd");
    while (const dirent* entry = ::readdir(folder)) {
        const int descriptor = std::atoi(entry->d_name);
        if (entry->d_name[0] == '.' || descriptor == ::dirfd(folder)) continue;
        if (!split::lower_descriptor(descriptor) && !split::launcher_channel(descriptor))
            all.push_back(descriptor);
    }
    ::closedir(folder);
    std::sort(all.begin(), all.end());
    return all;
}

std::string name_of(int descriptor) {
    char name[256];
    const ssize_t size = ::readlink(fmt::format("/proc/self/fd/{}", descriptor).c_str(), name, sizeof name);
    return size > 0 ? std::string(name, static_cast<size_t>(size)) : fmt::format("descriptor {}", descriptor);
}

Fd open_again(int descriptor, int flags) {
    return Fd(::open(fmt::format("/proc/self/fd/{}", descriptor).c_str(), flags | O_CLOEXEC));
}

std::vector<SamePlace> by_place(const std::vector<int>& descriptors) {
    std::vector<SamePlace> all;
    for (int descriptor : descriptors) {
        const auto same = [descriptor](const SamePlace& some) {
            const long order =
                ::syscall(SYS_kcmp, ::getpid(), ::getpid(), KCMP_FILE, some.front(), descriptor);
            if (order < 0) fail_errno("the kernel does not say which descriptors share a file");
            return order == 0;
        };
        auto at = std::find_if(all.begin(), all.end(), same);
        if (at == all.end())
            all.push_back({descriptor});
        else
            at->push_back(descriptor);
    }
    return all;
}

void put_in_place(const SamePlace& descriptors, Fd file) {
    const int first = descriptors.front();
    const off_t place = ::lseek(first, 0, SEEK_CUR);
    if (!file || (place > 0 && ::lseek(file.get(), place, SEEK_SET) != place))
        fail_errno("cannot open {} again", name_of(first));
    for (int descriptor : descriptors) {
        const int flags = ::fcntl(descriptor, F_GETFD);
        if (::dup3(file.get(), descriptor, (flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) < 0)
            fail_errno("cannot keep descriptor {}", descriptor);
    }
}

}  // namespace fermata::lower
