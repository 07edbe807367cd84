// Pipes, with a name or without: both ends within the process are one pipe again, with what waited in it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "split/process/descriptors/operations.h"

namespace fermata::split::process::descriptors {

class Pipes {
  public:
    explicit Pipes(const Json& saved) : saved_(saved) {}
    // The end that `one` has of a pipe without a name.
    Fd open_end(Restore& restore, const Description& one);
    Fd open_named(Restore& restore, const Description& one);
    void drop();

  private:
    struct Ends {
        Fd read, write;
    };
    Ends& ends_of(Restore& restore, const Description& one);

    const Json& saved_;  // by the text of the inode
    std::map<std::string, Ends> made_;
    std::vector<Fd> named_;         // both sides, so that no opening waits
    std::set<std::string> filled_;  // paths
};

}  // namespace fermata::split::process::descriptors
