#include "files/others_link.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "files/owners.h"

namespace fermata::files {
namespace {

constexpr int kMostLinks = 40;  // as the kernel

std::string target_of(const std::string& link) {
    char target[PATH_MAX];
    ssize_t n = ::readlink(link.c_str(), target, sizeof target);
    return n > 0 ? std::string(target, static_cast<size_t>(n)) : std::string();
}

// Where the path leads to, by links of ours and of root's; `whose` says which is not, or why it is not known.
std::string end_of(const std::string& path, std::string& whose) {
    std::string at, left = path;
    for (int links = 0; !left.empty();) {
        const size_t end = left.find('/');
        const std::string part = left.substr(0, end);
        left = end == left.npos ? "" : left.substr(end + 1);
        if (part.empty() || part == ".") continue;
        if (part == "..") {
            at.resize(at.empty() ? 0 : at.rfind('/'));
            continue;
        }
        const std::string next = at + "/" + part;
        struct stat status {};
        if (::lstat(next.c_str(), &status) != 0) {
            // Nothing is below, and no link.
            at = next + (left.empty() ? "" : "/" + left);
            return at;
        }
        if (!S_ISLNK(status.st_mode)) {
            at = next;
            continue;
        }
        const std::string target = target_of(next);
        if (!believed(status.st_uid)) {
            whose = fmt::format("{} is a link of {}'s", next, name_of_user(status.st_uid));
            return at;
        }
        if (target.empty() || ++links > kMostLinks) {
            whose = next + " is a link that cannot be followed";
            return at;
        }
        if (target[0] == '/') at.clear();
        left = target + (left.empty() ? "" : "/" + left);
    }
    return at;
}

}  // namespace

std::string others_link(const std::string& path) {
    std::string whose;
    end_of(path, whose);
    return whose;
}

std::string others_link(const std::string& path, int fd) {
    const std::string real = target_of("/proc/thread-self/fd/" + std::to_string(fd));
    if (real == path) return {};  // no link
    std::string whose;
    const std::string end = end_of(path, whose);
    if (whose.empty() && end != real) whose = fmt::format("{} is exchanged at this moment", path);
    return whose;
}

}  // namespace fermata::files
