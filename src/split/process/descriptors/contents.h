// Files without a name (removed ones, memfds): their content is in the state, once for each inode.
#pragma once

#include <map>
#include <string>

#include "split/process/descriptors/operations.h"

namespace fermata::split::process::descriptors {

// Notes the content of the entry's inode in `capture.contents`, and says which one it is.
std::string capture_content(Capture& capture, const Entry& entry, const std::string& path);

// The inodes that have been made again.
class Contents {
  public:
    explicit Contents(const Json& saved) : saved_(saved) {}
    // A description of its own. Throws Refused when the content does not fit.
    Fd open(Restore& restore, const Description& one);
    void drop() { made_.clear(); }

  private:
    const Json& saved_;  // by the text of the inode
    std::map<std::string, Fd> made_;
};

}  // namespace fermata::split::process::descriptors
