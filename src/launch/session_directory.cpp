#include "launch/session_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <exception>

#include "base/environment.h"
#include "base/error.h"
#include "base/host_name.h"

namespace fermata::launch {
namespace {

constexpr int kTries = 10000;  // the end of somebody else may come between our two directories each time

// In the order in which ORTE asks (seen with Open MPI 4.1.4), and with the host's name up to its first dot,
// as it takes it unless it is told to keep all of it.
std::string shared_directory() {
    const std::string place = text_from(
        {"OMPI_MCA_orte_local_tmpdir_base", "OMPI_MCA_orte_tmpdir_base", "TMPDIR", "TEMP", "TMP"}, "/tmp");
    const std::string host = host_name();
    return fmt::format("{}/ompi.{}.{}", place, host.substr(0, host.find('.')), ::geteuid());
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
        shared_ = shared_directory();
        entry_ = entry_in(shared_);
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
