// This header knows the directory that all launchers of Open MPI 4 of a user and a host share.
#pragma once

#include <string>

namespace fermata::launch {

// Keeps $TMPDIR/ompi.HOST.UID where it is for as long as this object lives. A launcher that ends removes the
// directory when it finds it empty; one that starts at that moment ends with "mkdir was unable to create the
// desired directory: File exists" (4.1.4: once in 3,000 starts, two of them in turns). An entry of ours
// inside makes it never empty. Open MPI 5 has no such directory: then it is there for nothing. Where this
// cannot be done, nothing is held, and the launcher says what it cannot do.
class HeldSessionDirectory {
  public:
    HeldSessionDirectory() = default;
    ~HeldSessionDirectory() { release(); }
    HeldSessionDirectory(const HeldSessionDirectory&) = delete;
    HeldSessionDirectory& operator=(const HeldSessionDirectory&) = delete;

    void hold() noexcept;
    void release() noexcept;  // removes both directories, the shared one if nobody else is in it

  private:
    std::string shared_;
    std::string entry_;  // inside it; "" = none is held
};

}  // namespace fermata::launch
