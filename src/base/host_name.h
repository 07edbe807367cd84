// host_name() is what this machine calls itself.
#pragma once

#include <unistd.h>

#include <string>

namespace fermata {

inline std::string host_name() {
    char name[256] = "";
    ::gethostname(name, sizeof name - 1);
    return name;
}

}  // namespace fermata
