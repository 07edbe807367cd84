// Files of the process itself in /proc, and files that their owner may not open.
//
// The kernel names a file in /proc/self by the process's number, which is another one after a restart.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "split/process/parts.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"

namespace fermata::split::process {
namespace {

constexpr std::string_view kProc = "/proc/", kTask = "task/";

// The number at `at`, and where the path goes on behind it; -1 = no whole component.
int number_at(const std::string& path, size_t at, size_t& behind) {
    char* end = nullptr;
    long number = std::strtol(path.c_str() + at, &end, 10);
    behind = static_cast<size_t>(end - path.c_str());
    if (behind == at || (*end != '/' && *end != 0)) return -1;
    return static_cast<int>(number);
}

}  // namespace

OwnProcFile own_proc_file(const std::string& path) {
    size_t at = 0;
    if (!path.starts_with(kProc) || number_at(path, kProc.size(), at) != raw::getpid()) return {};
    std::string rest = path.substr(at);  // "" or "/…"
    if (rest.compare(0, kTask.size() + 1, "/task/") != 0) return {"/proc/self" + rest, 0};
    size_t behind = 0;
    int tid = number_at(rest, kTask.size() + 1, behind);
    if (tid < 0) return {"/proc/self" + rest, 0};
    return {"/proc/self/task/" + rest.substr(behind), tid};
}

bool of_another_process(const std::string& path) {
    size_t at = 0;
    return path.starts_with(kProc) && number_at(path, kProc.size(), at) >= 0 &&
           own_proc_file(path).path.empty();
}

std::string proc_path_here(const std::string& path, int tid) {
    constexpr std::string_view kThreads = "/proc/self/task/";
    if (tid == 0) return path;
    return std::string(kThreads) + std::to_string(threads::new_tid(tid)) + path.substr(kThreads.size());
}

files::Opened open_as_owner(const std::string& path, int flags, std::optional<mode_t> saved_mode,
                            int place_flags) {
    files::Place place(path, place_flags);
    if (!place.is(S_IFREG)) return files::refused(place, S_IFREG, errno);
    Fd fd = place.open(flags);
    // Opened when its permissions still allowed it (0444 at its creation): they allow it for a moment. The
    // mode of the checkpoint comes back even if another rank is doing the same.
    if (!fd && errno == EACCES && place.status().st_uid == geteuid()) {
        mode_t now = place.status().st_mode;
        mode_t had = ((now & S_IWUSR) != 0 ? saved_mode.value_or(now) : now) & 07777;
        errno = EACCES;
        for (int attempt = 0; !fd && attempt < 100; ++attempt) {  // another rank may just have put it back
            if (!place.set_mode(had | S_IRUSR | S_IWUSR)) break;
            fd = place.open(flags);
        }
        int error = errno;
        place.set_mode(had);
        errno = error;
    }
    if (!fd) return files::refused(place, S_IFREG, errno);
    return {std::move(fd), 0, {}};
}

}  // namespace fermata::split::process
