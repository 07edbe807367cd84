// This header lists the open descriptors of this process, of both halves.
#pragma once

#include <string>
#include <vector>

namespace fermata::split {

struct DescriptorLink {
    int fd;
    std::string target;  // as readlink says it: a path, "anon_inode:[userfaultfd]", …
};
// Empty when /proc cannot be read.
std::vector<DescriptorLink> descriptor_links();

}  // namespace fermata::split
