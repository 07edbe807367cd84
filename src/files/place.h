// This header holds what a path of the program leads to (O_PATH) before anything is opened.
//
// The program's files are reached by the paths that the program had, and links in these paths are the
// user's own and are followed. But somebody may have put a pipe there, whose opening waits, or a device,
// whose opening does something. So the kind of the file is looked at first; then exactly that file is
// opened, whatever the path leads to by then.
#pragma once

#include <sys/stat.h>

#include <string>

#include "base/fd.h"

namespace fermata::files {

class Place {
  public:
    // `flags`: O_NOFOLLOW, when the last name is no link of the user's. Nothing there: errno tells why.
    explicit Place(const std::string& path, int flags = 0);

    explicit operator bool() const { return bool(fd_); }
    const struct stat& status() const { return status_; }
    bool is(mode_t kind) const { return fd_ && (status_.st_mode & S_IFMT) == kind; }
    // Gives none when it fails: errno tells why. Whoever opens a pipe or a device adds O_NONBLOCK.
    Fd open(int flags) const;
    bool set_mode(mode_t mode) const;

  private:
    std::string self() const;
    Fd fd_;
    struct stat status_ {};
};

// A file that was opened, or why not.
struct Opened {
    Fd fd;
    int error = 0;    // errno; 0 when `path` leads to a file of another kind
    std::string why;  // "" when it is open

    explicit operator bool() const { return bool(fd); }
};
// Opens what `path` leads to when it is of this kind (S_IFREG, S_IFIFO, …); nothing else is opened.
Opened open_kind(mode_t kind, const std::string& path, int flags, int place_flags = 0);
inline Opened open_regular(const std::string& path, int flags, int place_flags = 0) {
    return open_kind(S_IFREG, path, flags, place_flags);
}
// Why `place` was not opened as one of this kind.
Opened refused(const Place& place, mode_t kind, int error);

// Removes a Unix socket under this name, if there is one of somebody whom we believe (owners.h). Anything
// else, a link too, stays. Links in the directory's path are the user's own.
void remove_socket(const std::string& path) noexcept;

}  // namespace fermata::files
