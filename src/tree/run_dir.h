// Run directories: where a living job can be found. <base>/<name>, 0700, holding `lock` (held by its owner as
// long as it lives), sockets, and small files.
//
// A directory is *born locked*: it is made and filled under a private temporary name, its lock taken there,
// and only then renamed. So whoever sees a directory under its final name whose lock is free knows that its
// owner is dead, and may remove it; before it removes anything it takes that lock itself and looks again
// whether the name still means the same directory. (Making the directory first and locking it afterwards
// leaves a moment in which a sweep takes a newborn for dead.)
//
// The lock file's text is the marker: a directory without it is not one of these, whatever it is called, and
// nobody touches it. A directory that has the marker and holds anything else than sockets, small files of
// ours and folders of links is left, too.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "files/folder.h"

namespace fermata::tree {

// Where this user's run directories are made: fermata-UID in $FERMATA_RUN_DIR, else in /tmp (the same path on
// every node and from every login; XDG_RUNTIME_DIR is neither). Made 0700. When somebody else has taken that
// name: the next of fermata-UID.1 to .9, and a line that says so. Throws Error when there is none.
std::string run_base();
// The directory that they are in.
std::string place_of_run_bases();
// All of these that are there and this user's: a job may have been started when another name was free.
std::vector<std::string> run_bases();
// The base that the root of this job has chosen, on this node.
void ensure_run_base(const std::string& base);

class RunDir {
  public:
    RunDir() = default;
    RunDir(RunDir&&) noexcept = default;
    RunDir& operator=(RunDir&& other) noexcept;
    ~RunDir();

    // Makes <base>/<name>; `fill` is called with the temporary path and puts into it what must be there from
    // the first moment on: sockets, files whose names begin with a letter, and folders `mpi…` of links. When
    // the name belongs to a living owner: waits up to `patience_ms` for it to go, then returns an empty
    // RunDir.
    static RunDir create(const std::string& base, const std::string& name,
                         const std::function<void(const std::string& path)>& fill, int patience_ms = 0);

    // Leaves the directory behind as a killed process would.
    void abandon() { lock_.reset(); }

    explicit operator bool() const { return bool(lock_); }
    const std::string& path() const { return path_; }
    std::string name() const { return path_.substr(path_.rfind('/') + 1); }

  private:
    std::string path_;
    Fd lock_;
};

// Removes what dead owners left in `base`, as far as it carries our marker and holds nothing else; returns
// how many directories went. Never throws for a single directory.
int sweep(const std::string& base);
// Names of the directories whose owner lives, and of those whose owner is dead.
std::vector<std::string> living(const std::string& base);
std::vector<std::string> dead(const std::string& base);

}  // namespace fermata::tree
