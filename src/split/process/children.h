// The application's child processes: helper commands of system(), popen() and the like.
#pragma once

#include <string>
#include <vector>

namespace fermata::split::process {

struct Child {
    int pid;
    bool ended;  // and nobody has waited for it yet
    std::string name;
};
// Lists those of the threads that are there now, but for the calling one, whose are Fermata's; also while
// they run.
std::vector<Child> children();

}  // namespace fermata::split::process
