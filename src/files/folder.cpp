#include "files/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "files/owners.h"

namespace fermata::files {
namespace {

constexpr size_t kPieces = 1u << 18;  // are written together

int openat_again(int at, const char* name, int flags, mode_t mode) {
    int fd;
    do fd = ::openat(at, name, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

// Names of directories and files in a folder are made by us: a slash in one is somebody's trick.
void check_name(const std::string& name) {
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos)
        fail("'{}' is not the name of a file in a directory", name);
}

}  // namespace

std::optional<Folder> Folder::open(int at, const std::string& name, const std::string& path, int flags) {
    Fd fd(openat_again(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | flags, 0));
    if (!fd) return {};
    auto opened = std::make_shared<Open>();
    if (::fstat(fd.get(), &opened->status) != 0) fail_errno("cannot stat {}", path);
    opened->fd = std::move(fd);
    opened->path = path;
    Folder folder;
    folder.open_ = std::move(opened);
    return folder;
}

Folder Folder::at(const std::string& path) {
    auto folder = open(AT_FDCWD, path, path, 0);
    if (!folder) fail_errno("cannot open directory {}", path);
    return *folder;
}

std::optional<Folder> Folder::find_at(const std::string& path) {
    auto folder = open(AT_FDCWD, path, path, 0);
    if (!folder && errno != ENOENT && errno != ENOTDIR) fail_errno("cannot open directory {}", path);
    return folder;
}

Folder Folder::closed() const {
    auto told = std::make_shared<Open>();
    told->path = open_->path;
    told->status = open_->status;
    Folder folder;
    folder.open_ = std::move(told);
    return folder;
}

void Folder::check_owner(const std::string& what) const {
    if (!believed(owner()))
        throw Error(
            fmt::format("{} belongs to {}: what it holds would run with your rights; --allow-owner {} "
                        "takes it all the same",
                        what, name_of_user(owner()), owner()),
            ExitCode::damaged);
}

std::optional<Folder> Folder::find(const std::string& name) const {
    check_name(name);
    auto folder = open(descriptor(), name, path_of(name), O_NOFOLLOW);
    if (folder || errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return folder;
    const int code = errno;
    // Somebody else's, closed to us, is none of ours: nobody shall be stopped by such a name.
    if ((code == EACCES || code == ENOTCONN) && is_others(name)) return {};
    errno = code;
    fail_errno("cannot open directory {}", path_of(name));
}

bool Folder::is_others(const std::string& name) const {
    struct stat status {};
    if (::fstatat(descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
        return status.st_uid != ::geteuid() && status.st_uid != 0;
    // A file system of another user's is mounted there (FUSE): not even a look is allowed. In a directory
    // that cannot be searched nothing has a look.
    return (errno == EACCES || errno == ENOTCONN) && ::faccessat(descriptor(), ".", X_OK, AT_EACCESS) == 0;
}

Folder Folder::below(const std::string& name) const {
    auto folder = find(name);
    if (!folder) fail("cannot open directory {}: {}", path_of(name), std::strerror(errno));
    return *folder;
}

std::optional<Folder> Folder::find_beside(const std::string& name) const {
    auto parent = open(descriptor(), "..", split_path(path()).first, 0);
    if (!parent) fail_errno("cannot open the directory of {}", path());
    return parent->find(name);
}

Folder Folder::beside(const std::string& name) const {
    auto folder = find_beside(name);
    if (!folder)
        fail("cannot open directory {}/{}: {}", split_path(path()).first, name, std::strerror(errno));
    return *folder;
}

std::optional<Folder> Folder::make(const std::string& name) const {
    check_name(name);
    if (::mkdirat(descriptor(), name.c_str(), 0700) != 0) {
        if (errno == EEXIST) return {};
        fail_errno("cannot create {}", path_of(name));
    }
    Folder made = below(name);
    // Whoever may write here could have put a directory of somebody else's under the name meanwhile.
    if (made.owner() != ::geteuid() || made.open_to_others())
        fail("{} was exchanged while it was made: {} is open to others", path_of(name), path());
    return made;
}

std::optional<Folder> Folder::own(const std::string& name) const {
    if (auto made = make(name)) return made;
    auto found = find(name);
    if (!found || found->owner() != ::geteuid() || (found->mode() & 077) != 0) return {};
    return found;
}

std::optional<Fd> Folder::try_open(const std::string& name, int flags, mode_t mode) const {
    check_name(name);
    Fd fd(openat_again(descriptor(), name.c_str(), flags | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, mode));
    if (!fd) return {};
    return fd;
}

std::optional<Fd> Folder::try_create(const std::string& name) const {
    auto fd = try_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (!fd && errno != EEXIST) fail_errno("cannot create {}", path_of(name));
    return fd;
}

Fd Folder::create(const std::string& name) const {
    auto fd = try_create(name);
    if (!fd) fail("cannot create {}: {}", path_of(name), std::strerror(EEXIST));
    return std::move(*fd);
}

Fd Folder::checked(const std::string& name, int flags) const {
    auto fd = try_open(name, flags);
    if (!fd) {
        if (errno == ELOOP) fail("{} is a link: files of Fermata are not", path_of(name));
        fail_errno("cannot open {}", path_of(name));
    }
    struct stat status {};
    if (::fstat(fd->get(), &status) != 0) fail_errno("cannot stat {}", path_of(name));
    if (!S_ISREG(status.st_mode)) fail("{} is not a regular file", path_of(name));
    if (!believed(status.st_uid))
        throw Error(fmt::format("{} belongs to {}: --allow-owner {} takes it all the same", path_of(name),
                                name_of_user(status.st_uid), status.st_uid),
                    ExitCode::damaged);
    // O_NONBLOCK was for the moment of the opening.
    ::fcntl(fd->get(), F_SETFL, flags & O_APPEND);
    return std::move(*fd);
}

Fd Folder::read(const std::string& name) const { return checked(name, O_RDONLY); }
Fd Folder::write(const std::string& name) const { return checked(name, O_RDWR); }

Fd Folder::made_by_us(const std::string& name, int flags) const {
    auto fd = try_open(name, O_RDWR | O_CREAT | flags, 0600);
    if (!fd) {
        if (errno == ELOOP)
            fail("{} is a link, which Fermata did not make: remove it, or use another directory",
                 path_of(name));
        fail_errno("cannot open {}", path_of(name));
    }
    struct stat status {};
    if (::fstat(fd->get(), &status) != 0) fail_errno("cannot stat {}", path_of(name));
    if (!S_ISREG(status.st_mode) || status.st_nlink > 1)
        fail("{} is not a file that Fermata made: use another directory", path_of(name));
    if (!believed(status.st_uid))
        fail("{} belongs to {}: use a directory of your own", path_of(name), name_of_user(status.st_uid));
    return std::move(*fd);
}

Fd Folder::lock_file(const std::string& name) const { return made_by_us(name, 0); }
Fd Folder::append(const std::string& name) const { return made_by_us(name, O_APPEND); }

std::string Folder::text(const std::string& name, uint64_t most) const {
    Fd fd = read(name);
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) fail_errno("cannot stat {}", path_of(name));
    if (static_cast<uint64_t>(status.st_size) > most)  // not one of ours: not even begun
        fail("{} is longer than {} bytes: not one of ours", path_of(name), most);
    return read_rest(fd.get(), path_of(name), most);
}

void Folder::put(const std::string& name, const std::function<void(const Put&)>& fill, bool synced,
                 mode_t mode) const {
    std::string temporary = name + ".new";
    // A killed process has left it; a link is removed, not followed.
    if (!remove_file(temporary) && errno != ENOENT) fail_errno("cannot remove {}", path_of(temporary));
    {
        Fd fd = create(temporary);
        std::string waiting;
        auto write = [&](std::string_view bytes) {
            write_all(fd.get(), bytes.data(), bytes.size(), path_of(temporary));
        };
        fill([&](std::string_view piece) {
            waiting += piece;
            if (waiting.size() >= kPieces) write(std::exchange(waiting, {}));
        });
        write(waiting);
        if (mode != 0600 && ::fchmod(fd.get(), mode) != 0) fail_errno("cannot change {}", path_of(temporary));
        if (synced) sync_file(fd.get(), path_of(temporary));
    }
    if (!rename(temporary, name)) fail_errno("cannot rename {} to {}", path_of(temporary), path_of(name));
    if (synced) sync();
}

void Folder::replace(const std::string& name, const std::string& content) const {
    put(
        name, [&](const Put& put) { put(content); }, true);
}
void Folder::replace(const std::string& name, const std::function<void(const Put&)>& fill) const {
    put(name, fill, true);
}
void Folder::publish(const std::string& name, const std::string& content) const {
    put(
        name, [&](const Put& put) { put(content); }, false, 0644);
}
void Folder::replace_unsynced(const std::string& name, const std::string& content) const {
    put(
        name, [&](const Put& put) { put(content); }, false);
}

std::optional<struct stat> Folder::look(const std::string& name) const {
    check_name(name);
    struct stat status {};
    if (::fstatat(descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return status;
    if (errno != ENOENT) fail_errno("cannot stat {}", path_of(name));
    return {};
}

std::optional<uint64_t> Folder::size_of(const std::string& name) const {
    auto status = look(name);
    if (!status || !S_ISREG(status->st_mode)) return {};
    return static_cast<uint64_t>(status->st_size);
}

std::vector<std::string> Folder::names() const {
    // A descriptor of its own: its place in the directory is not shared with other readers.
    int fd = openat_again(descriptor(), ".", O_RDONLY | O_DIRECTORY, 0);
    DIR* directory = fd < 0 ? nullptr : ::fdopendir(fd);
    if (!directory) {
        Fd closes(fd);
        fail_errno("cannot read directory {}", path());
    }
    std::vector<std::string> found;
    int code = 0;
    for (;;) {
        errno = 0;
        const dirent* entry = ::readdir(directory);
        if (!entry) {
            code = errno;
            break;
        }
        std::string name = entry->d_name;
        if (name != "." && name != "..") found.push_back(std::move(name));
    }
    ::closedir(directory);
    errno = code;
    if (code != 0) fail_errno("cannot read directory {}", path());
    std::sort(found.begin(), found.end());
    return found;
}

bool Folder::remove_file(const std::string& name) const noexcept {
    return ::unlinkat(descriptor(), name.c_str(), 0) == 0;
}
bool Folder::remove_empty(const std::string& name) const noexcept {
    return ::unlinkat(descriptor(), name.c_str(), AT_REMOVEDIR) == 0;
}
bool Folder::rename(const std::string& from, const std::string& to) const noexcept {
    return ::renameat(descriptor(), from.c_str(), descriptor(), to.c_str()) == 0;
}
bool Folder::exchange(const std::string& one, const std::string& other) const noexcept {
    return ::renameat2(descriptor(), one.c_str(), descriptor(), other.c_str(), RENAME_EXCHANGE) == 0;
}

void Folder::sync() const {
    // Some file systems have no directory sync (EINVAL); there the rename is as safe as it can be.
    if (::fsync(descriptor()) != 0 && errno != EINVAL)
        fail_errno("cannot bring directory {} to storage", path());
}

bool Folder::is_at(const std::string& path) const {
    struct stat named {};
    return ::stat(path.c_str(), &named) == 0 && named.st_ino == open_->status.st_ino &&
           named.st_dev == open_->status.st_dev;
}

bool Folder::is(const Folder& parent, const std::string& name) const {
    auto named = parent.look(name);
    return named && named->st_ino == open_->status.st_ino && named->st_dev == open_->status.st_dev;
}

void make_path(const std::string& path) {
    auto is_directory = [](const std::string& name) {
        struct stat status {};
        return ::stat(name.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    };
    for (size_t at = 0; at != std::string::npos;) {
        at = path.find('/', at + 1);
        std::string part = path.substr(0, at);
        if (part.empty() || part == ".") continue;
        if (::mkdir(part.c_str(), 0700) == 0) {
            // Without this a power cut may take what is later committed below it.
            Folder::at(split_path(part).first).sync();
        } else if (int code = errno;
                   code != EEXIST && !is_directory(part)) {  // EROFS and the like on existing ones
            errno = code;
            fail_errno("cannot create directory {}", part);
        }
    }
    if (!is_directory(path)) fail("cannot create directory {}: it is a file", path);
}

std::string absolute_path(const std::string& path) {
    std::string whole = path;
    if (path.empty() || path[0] != '/') {
        std::unique_ptr<char, decltype(&::free)> here(::getcwd(nullptr, 0), &::free);
        if (!here) fail_errno("cannot tell the current directory, which {} starts from", path);
        whole = std::string(here.get()) + "/" + path;
    }
    std::vector<std::string> parts;
    for (size_t begin = 0; begin < whole.size();) {
        size_t end = std::min(whole.find('/', begin), whole.size());
        std::string part = whole.substr(begin, end - begin);
        if (part == "..") {
            if (!parts.empty()) parts.pop_back();
        } else if (!part.empty() && part != ".") {
            parts.push_back(part);
        }
        begin = end + 1;
    }
    std::string text;
    for (const std::string& part : parts) text += "/" + part;
    return text.empty() ? "/" : text;
}

std::pair<std::string, std::string> split_path(const std::string& path) {
    size_t slash = path.rfind('/');
    if (slash == std::string::npos) return {".", path};
    return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace fermata::files
