// Directories, by their name; one that has been removed is an empty one again.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

#include "split/process/descriptors/restore.h"

namespace fermata::split::process::descriptors {
namespace {

bool is_ours(const Entry& entry) { return entry.is(S_IFDIR) && !of_another_process(entry.link); }

bool is_directory(const Entry& entry) {
    return is_ours(entry) && (entry.status.st_nlink != 0 || !own_proc_file(entry.link).path.empty());
}

Json capture_directory(Capture&, const Entry& entry) {
    if (OwnProcFile own = own_proc_file(entry.link); !own.path.empty())
        return {{"path", own.path}, {"thread", own.tid}};
    return {{"path", entry.link}};
}

Fd make_directory(Restore& restore, const Description& one) {
    std::string path = proc_path_here(one.saved.at("path"), one.saved.value("thread", 0));
    // (O_PATH alone would not mount what comes with a look, autofs.)
    if (Fd fd(open(path.c_str(), reopen_flags(one.flags) | O_DIRECTORY)); fd) {
        check_way(fd.get(), one, path);
        // The program sees O_DIRECTORY among the flags.
        return (one.flags & O_DIRECTORY) != 0 ? std::move(fd) : open_again(fd.get(), one.flags);
    }
    restore.warnings.push_back(path + " (" + one.who + ") cannot be opened here: " + error_text(errno));
    return Restore::placeholder();
}

bool is_removed(const Entry& entry) { return is_ours(entry) && entry.status.st_nlink == 0; }

Json capture_removed(Capture& capture, const Entry& entry) {
    capture.warnings.push_back(entry.who() + ": the directory " + entry.link +
                               " has been removed: after a restart it is an empty one");
    return {{"path", entry.link}};
}

Fd make_removed(Restore&, const Description&) {
    char name[] = "/tmp/fermata-dir-XXXXXX";
    if (mkdtemp(name) == nullptr) return {};
    Fd fd(open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    rmdir(name);
    return fd;
}

}  // namespace

const Operations kDirectory = {.kind = Kind::directory,
                               .is = is_directory,
                               .capture = capture_directory,
                               .make = make_directory,
                               .has_offset = true};
const Operations kRemovedDirectory = {
    .kind = Kind::removed_directory, .is = is_removed, .capture = capture_removed, .make = make_removed};

}  // namespace fermata::split::process::descriptors
