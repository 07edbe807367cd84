#include "files/place.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "files/folder.h"
#include "files/owners.h"

namespace fermata::files {
namespace {

// Flags for work that the first opening has done already, or that would make another file than the one that
// is held.
constexpr int kNotAgain = O_NOFOLLOW | O_CREAT | O_EXCL | O_TRUNC;

Fd open_again(const char* path, int flags) {
    int fd;
    do fd = ::open(path, flags | O_CLOEXEC | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    return Fd(fd);
}

const char* word_of(mode_t mode) {
    switch (mode & S_IFMT) {
        case S_IFREG:
            return "a regular file";
        case S_IFDIR:
            return "a directory";
        case S_IFIFO:
            return "a named pipe";
        case S_IFSOCK:
            return "a socket";
        case S_IFLNK:
            return "a link";
        default:
            return "a device";
    }
}

}  // namespace

Place::Place(const std::string& path, int flags) : fd_(open_again(path.c_str(), O_PATH | flags)) {
    if (fd_ && ::fstat(fd_.get(), &status_) != 0) fd_.reset();
}

// By this the kernel opens the held file itself: no name is looked up. (A thread may have descriptors of its
// own, as the one that keeps files at a checkpoint has.)
std::string Place::self() const { return "/proc/thread-self/fd/" + std::to_string(fd_.get()); }

Fd Place::open(int flags) const { return open_again(self().c_str(), flags & ~kNotAgain); }

bool Place::set_mode(mode_t mode) const { return ::chmod(self().c_str(), mode) == 0; }

Opened refused(const Place& place, mode_t kind, int error) {
    if (place && !place.is(kind)) return {{}, 0, std::string("it is ") + word_of(place.status().st_mode)};
    return {{}, error, std::strerror(error)};
}

Opened open_kind(mode_t kind, const std::string& path, int flags, int place_flags) {
    Place place(path, place_flags);
    if (!place.is(kind)) return refused(place, kind, errno);
    Fd fd = place.open(flags);
    if (!fd) return refused(place, kind, errno);
    return {std::move(fd), 0, {}};
}

// Linux cannot remove what a descriptor holds. An attacker who exchanges the socket between the look and the
// removal can remove from this directory anyway: in one that is sticky nobody can exchange another user's
// files.
void remove_socket(const std::string& path) noexcept {
    try {
        auto [directory, name] = split_path(path);
        auto folder = Folder::find_at(directory);
        if (!folder) return;
        auto there = folder->look(name);
        if (there && S_ISSOCK(there->st_mode) && believed(there->st_uid)) folder->remove_file(name);
    } catch (const std::exception&) {
        // The file cannot be reached: nor can its address be taken, which says so.
    }
}

}  // namespace fermata::files
