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
// Of the threads that are there now; also while they run.
std::vector<Child> children();

}  // namespace fermata::split::process
