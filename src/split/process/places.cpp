#include "split/process/places.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>

#include "split/process/parts.h"

namespace fermata::split::process {
namespace {

std::string g_temporary;
bool g_known = false;

bool is_within(const std::string& path, const std::string& folder) {
    return path.compare(0, folder.size(), folder) == 0 &&
           (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace

const std::string& temporary_folder() {
    if (!g_known) {
        const char* given = std::getenv("TMPDIR");
        g_temporary = given != nullptr && given[0] == '/' ? given : "";
        g_known = true;
    }
    return g_temporary;
}

std::string make_temporary_folder(std::string_view bytes) {
    Json state = parse_state(bytes);
    g_temporary = state.value("tmpdir", "");
    g_known = true;
    struct stat there;
    if (g_temporary.empty() || stat(g_temporary.c_str(), &there) == 0) return {};
    // Only the folder itself is the program's alone; what is above it is as of anybody.
    for (size_t slash = g_temporary.find('/', 1); slash != std::string::npos;
         slash = g_temporary.find('/', slash + 1))
        mkdir(g_temporary.substr(0, slash).c_str(), 0755);
    if (mkdir(g_temporary.c_str(), 0700) == 0)
        return "TMPDIR of the first start, " + g_temporary + ", was gone: it is there again, and empty";
    if (errno == EEXIST) return {};  // another rank
    return "TMPDIR of the first start, " + g_temporary + ", is gone and cannot be made again (" +
           error_text(errno) + "): the program may fail to make temporary files";
}

std::string say_of_another_place(std::string_view bytes, const std::string& directory) {
    Json state = parse_state(bytes);
    std::string old = state.value("generation_directory", ""), now = directory;
    if (old.empty() || old == now) return {};
    struct stat a, b;
    if (stat(old.c_str(), &a) == 0 && stat(now.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino)
        return {};  // two names of one folder
    // Without the names that both end in.
    for (;;) {
        size_t one = old.rfind('/'), other = now.rfind('/');
        if (one == std::string::npos || one == 0 || other == std::string::npos || other == 0 ||
            old.substr(one) != now.substr(other))
            break;
        old.resize(one);
        now.resize(other);
    }
    std::string cwd = state.at("settings").at("cwd");
    if (!is_within(cwd, old)) return {};
    return "the checkpoint was made in " + old + ", and the program goes on in " + cwd + ": --map " + old +
           "=" + now + " continues it here";
}

}  // namespace fermata::split::process
