#include "lower/program_descriptors.h"

#include <dirent.h>
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

}  // namespace fermata::lower
