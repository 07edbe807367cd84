#include "lower/stay.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "split/fds/descriptors.h"
#include "wire/message.h"

namespace fermata::lower {
namespace {

// The rank's own, while this process writes elsewhere; -1: it is no copy.
struct Streams {
    int output = -1, error = -1;
} ranks_own;

std::vector<int> programs_descriptors() {
    std::vector<int> all;
    DIR* folder = ::opendir("/proc/self/fd");
    if (folder == nullptr) fail_errno("cannot read /proc/self/fd");
    while (const dirent* entry = ::readdir(folder)) {
        const int descriptor = std::atoi(entry->d_name);
        if (entry->d_name[0] == '.' || descriptor == ::dirfd(folder)) continue;
        if (!split::lower_descriptor(descriptor) && !split::launcher_channel(descriptor))
            all.push_back(descriptor);
    }
    ::closedir(folder);
    return all;
}

enum class Sort { nothing, read, other };

// Nothing: both may have it, since it has no place.
Sort sort_of(int descriptor) {
    struct stat what {};
    if (::fstat(descriptor, &what) != 0) return Sort::nothing;
    const int mode = ::fcntl(descriptor, F_GETFL) & O_ACCMODE;
    if (S_ISREG(what.st_mode) || S_ISDIR(what.st_mode)) return mode == O_RDONLY ? Sort::read : Sort::other;
    if (S_ISCHR(what.st_mode)) return Sort::nothing;  // /dev/null, /dev/urandom
    return Sort::other;
}

std::string name_of(int descriptor) {
    char name[256];
    const ssize_t size = ::readlink(fmt::format("/proc/self/fd/{}", descriptor).c_str(), name, sizeof name);
    return size > 0 ? std::string(name, static_cast<size_t>(size)) : fmt::format("descriptor {}", descriptor);
}

// Nothing comes any more.
bool has_ended(int descriptor) {
    pollfd one{descriptor, POLLIN, 0};
    return ::poll(&one, 1, 0) > 0 && (one.revents & POLLIN) == 0;
}

// The same file at the same place, which nobody else moves.
void open_again(int descriptor) {
    Fd own(::open(fmt::format("/proc/self/fd/{}", descriptor).c_str(), O_RDONLY | O_CLOEXEC));
    if (!own) fail_errno("cannot open {} again", name_of(descriptor));
    const off_t place = ::lseek(descriptor, 0, SEEK_CUR);
    if (place > 0) ::lseek(own.get(), place, SEEK_SET);
    const int flags = ::fcntl(descriptor, F_GETFD);
    if (::dup2(own.get(), descriptor) < 0) fail_errno("cannot keep descriptor {}", descriptor);
    ::fcntl(descriptor, F_SETFD, flags);
}

int moved_aside(int descriptor) {
    const int aside = split::raise_descriptor(::dup(descriptor));
    Fd own(::memfd_create("fermata-copy", MFD_CLOEXEC));
    if (aside < 0 || !own || ::dup2(own.get(), descriptor) < 0)
        fail_errno("cannot keep the output of a copy apart");
    return aside;
}

}  // namespace

std::string why_not_stay() {
    for (int descriptor : programs_descriptors()) {
        if (descriptor == STDOUT_FILENO || descriptor == STDERR_FILENO) continue;
        if (sort_of(descriptor) != Sort::other) continue;
        if (descriptor != STDIN_FILENO) return fmt::format("it has {} open", name_of(descriptor));
        if (!has_ended(descriptor)) return "it has the job's standard input (run the job with < /dev/null)";
    }
    return "";
}

std::unique_ptr<tree::AgentLink> stay_behind(const tree::AgentConfig& config, Rank rank) {
    for (int descriptor : programs_descriptors())
        if (descriptor != STDOUT_FILENO && descriptor != STDERR_FILENO && sort_of(descriptor) == Sort::read)
            open_again(descriptor);
    ranks_own = {moved_aside(STDOUT_FILENO), moved_aside(STDERR_FILENO)};
    auto link = std::make_unique<tree::AgentLink>(config);
    link->adopt(split::raise_descriptor(link->fd()));
    link->send(wire::Stays{config.job_id, static_cast<int32_t>(rank.number())});
    return link;
}

bool is_copy() { return ranks_own.output >= 0; }

void take_place(tree::AgentLink& link) {
    if (!is_copy()) return;
    const int output = split::raise_descriptor(::dup(STDOUT_FILENO));
    const int error = split::raise_descriptor(::dup(STDERR_FILENO));
    ::dup2(ranks_own.output, STDOUT_FILENO);
    ::dup2(ranks_own.error, STDERR_FILENO);
    link.send(wire::Wrote{output, error});
    ranks_own = {};
}

}  // namespace fermata::lower
