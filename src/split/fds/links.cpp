#include "split/fds/links.h"

#include <dirent.h>
#include <unistd.h>

#include <cstdlib>

namespace fermata::split {

std::vector<DescriptorLink> descriptor_links() {
    std::vector<DescriptorLink> found;
    DIR* descriptors = ::opendir("/proc/self/fd");
    if (!descriptors) return found;
    while (dirent* entry = ::readdir(descriptors)) {
        char name[256];
        std::string link = std::string("/proc/self/fd/") + entry->d_name;
        ssize_t n = ::readlink(link.c_str(), name, sizeof name);
        if (n > 0) found.push_back({std::atoi(entry->d_name), std::string(name, static_cast<size_t>(n))});
    }
    ::closedir(descriptors);
    return found;
}

}  // namespace fermata::split
