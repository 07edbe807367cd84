#include "launch/session_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <exception>

#include "base/error.h"

namespace fermata::launch {
namespace {

constexpr int kTries = 10000;  // the end of somebody else may come between our two directories each time

// The order in which ORTE asks (seen with Open MPI 4.1.4).
std::string place_of_directories() {
    for (const char* name :
         {"OMPI_MCA_orte_local_tmpdir_base", "OMPI_MCA_orte_tmpdir_base", "TMPDIR", "TEMP", "TMP"})
        if (const char* place = std::getenv(name); place && *place) return place;
    return "/tmp";
}

// The host's name up to its first dot, as ORTE takes it unless it is told to keep all of it.
std::string host() {
    std::array<char, HOST_NAME_MAX + 1> name{};
    ::gethostname(name.data(), name.size() - 1);
    const std::string whole = name.data();
    return whole.substr(0, whole.find('.'));
}

// Makes a directory of this process's alone in `shared`, and `shared` if it is missing. Returns its path, ""
// if that cannot be done.
std::string entry_in(const std::string& shared) {
    for (int tries = 0; tries < kTries; ++tries) {
        if (::mkdir(shared.c_str(), S_IRWXU) != 0 && errno != EEXIST) break;
        struct stat status {};
        if (::lstat(shared.c_str(), &status) == 0 &&
            (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid()))
            break;
        std::string entry = shared + "/fermata.XXXXXX";
        if (::mkdtemp(entry.data())) return entry;
        if (errno != ENOENT) break;
    }
    return {};
}

}  // namespace

void HeldSessionDirectory::hold() noexcept {
    try {
        release();
        const std::string shared = fmt::format("{}/ompi.{}.{}", place_of_directories(), host(), ::geteuid());
        entry_ = entry_in(shared);
        shared_ = shared;
    } catch (const std::exception&) {
        // No memory for two names: the launcher has none either.
    }
}

void HeldSessionDirectory::release() noexcept {
    if (entry_.empty()) return;
    ::rmdir(entry_.c_str());
    ::rmdir(shared_.c_str());
    entry_.clear();
}

}  // namespace fermata::launch
