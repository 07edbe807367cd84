// Files in /dev/shm that ranks' MPI libraries have made, and leave behind when a rank is killed. Each rank
// notes their names in its node daemon's directory while it lives (split/alloc/shared_names.h); when it is
// dead, those that nobody uses any more are removed.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <utility>

#include "files/folder.h"

namespace fermata::tree {

// The rank's own file, in the node daemon's directory. From the rank's death until its files are gone the
// notes have the other name: a daemon that is killed in between leaves them to whoever removes the directory.
inline constexpr const char* kSharedNames = "shared.";
inline constexpr const char* kLeftNames = "left.";
inline std::string name_of_shared_names(pid_t rank) { return kSharedNames + std::to_string(rank); }

class SharedNames {
  public:
    explicit SharedNames(files::Folder directory) : directory_(std::move(directory)) {}

    // The rank is dead, or, without one, all are.
    void gone(pid_t rank) noexcept;
    void all_gone() noexcept;
    // Removes those of their files that no living rank has noted and no process of this user has mapped or
    // open. A name that is another file by now, or another user's, stays. Looks once after each death.
    void remove_unused() noexcept;
    // Says whether all that the dead have left is gone.
    bool empty() const noexcept { return names_.empty(); }

  private:
    void take(const std::string& notes);
    void take_all(const char* kind);
    void remove_of_the_dead();
    void forget_notes();
    files::Folder directory_;
    std::map<std::string, std::pair<dev_t, ino_t>> names_;  // of the dead
    bool looked_at_ = true;
};

}  // namespace fermata::tree
