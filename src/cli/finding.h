// Finding is a line of `fermata doctor`.
#pragma once

#include <string>
#include <vector>

namespace fermata::cli {

struct Finding {
    std::string what;
    bool ok = true;
    bool needed = false;  // a job cannot run without it
    std::string found;
    std::vector<std::string> lacks = {};  // an MPI library: functions
};

}  // namespace fermata::cli
