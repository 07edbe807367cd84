#include "job/run_dir.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "base/error.h"

namespace fs = std::filesystem;

namespace fermata::job {
namespace {

// Temporary names tell the process that uses them: .new-<pid>-<n> is being born, .dead-<pid>-<n> being
// removed.
std::string temporary(const std::string& base, const char* kind) {
    static std::atomic<unsigned> count{0};
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return fmt::format("{}/.{}-{}-{}-{}", base, kind, ::getpid(), count++, now.tv_nsec);
}

enum class Owner { alive, dead, vanished };

// Looks whether somebody holds the lock of `path`. When nobody does, `lock` holds it on return.
Owner owner_of(const std::string& path, Fd& lock) {
    // Through a descriptor of the directory: the name may change its meaning at any moment.
    Fd dir(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!dir) return Owner::vanished;
    // A directory without a lock was not born here (or somebody tidied up by hand): it gets one, so that the
    // same rules hold for it.
    Fd fd(::openat(dir.get(), "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return Owner::vanished;
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return Owner::alive;
    // Until the lock was ours the directory may have been removed, and its name given to a newborn.
    struct stat held, named;
    if (::fstat(fd.get(), &held) != 0 || ::stat((path + "/lock").c_str(), &named) != 0 ||
        held.st_ino != named.st_ino || held.st_dev != named.st_dev)
        return Owner::vanished;
    lock = std::move(fd);
    return Owner::dead;
}

// Only for the holder of its lock. First the name, then the content: nobody ever sees half a directory.
bool remove_locked(const std::string& path) noexcept {
    try {
        auto slash = path.rfind('/');
        std::string grave = temporary(path.substr(0, slash), "dead");
        if (::rename(path.c_str(), grave.c_str()) != 0) return false;
        std::error_code ignored;
        fs::remove_all(grave, ignored);
        return true;
    } catch (...) {
        return false;
    }
}

// A temporary directory whose process is gone. It must also be old: a process of another pid namespace looks
// gone.
bool is_litter(const std::string& path, const std::string& name) {
    auto dash = name.find('-');
    if (dash == std::string::npos) return false;
    pid_t pid = static_cast<pid_t>(std::atol(name.c_str() + dash + 1));
    struct stat info;
    if (pid <= 0 || ::kill(pid, 0) == 0 || errno != ESRCH || ::lstat(path.c_str(), &info) != 0) return false;
    return ::time(nullptr) - info.st_mtime > 60;
}

std::vector<std::string> entries(const std::string& base) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(base, error), end; !error && at != end; at.increment(error))
        names.push_back(at->path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace

std::string run_base() {
    const char* given = std::getenv("FERMATA_RUN_DIR");
    std::string base = given && *given ? given : fmt::format("/tmp/fermata-{}", ::geteuid());
    if (base[0] != '/') base = fs::absolute(base).string();
    while (base.size() > 1 && base.back() == '/') base.pop_back();
    make_directories(base);
    struct stat info;
    if (::lstat(base.c_str(), &info) != 0) fail_errno("cannot use the run directory {}", base);
    if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 077) != 0)
        fail(
            "the run directory {} is not a directory of yours with mode 0700: remove it, or set "
            "FERMATA_RUN_DIR",
            base);
    return base;
}

RunDir& RunDir::operator=(RunDir&& other) noexcept {
    if (this != &other) {
        if (lock_) remove_locked(path_);
        path_ = std::move(other.path_);
        lock_ = std::move(other.lock_);
    }
    return *this;
}

RunDir::~RunDir() {
    if (lock_) remove_locked(path_);
}

RunDir RunDir::create(const std::string& base, const std::string& name,
                      const std::function<void(const std::string&)>& fill, int patience_ms) {
    RunDir dir;
    std::string final_path = base + "/" + name;
    // Under the temporary name nobody touches it (is_litter), unless it takes a minute to be filled and this
    // process looks dead from another pid namespace: then the steps below fail and the birth is tried again.
    for (int attempt = 0;; ++attempt) {
        std::string path = temporary(base, "new");
        try {
            if (::mkdir(path.c_str(), 0700) != 0) fail_errno("cannot create the run directory {}", path);
            dir.lock_ = open_file(path + "/lock", O_RDWR | O_CREAT | O_EXCL, 0600);
            if (::flock(dir.lock_.get(), LOCK_EX | LOCK_NB) != 0) fail_errno("cannot lock {}/lock", path);
            if (fill) fill(path);
            dir.path_ = path;
            break;
        } catch (const Error&) {
            dir.lock_.reset();
            std::error_code ignored;
            bool gone = !fs::exists(path, ignored);
            fs::remove_all(path, ignored);
            if (!gone || attempt == 4) throw;
        }
    }
    for (int waited = 0, lost = 0;;) {
        // rename replaces an empty directory only; one with a lock file in it stays: EEXIST or ENOTEMPTY.
        if (::rename(dir.path_.c_str(), final_path.c_str()) == 0) {
            dir.path_ = final_path;
            return dir;
        }
        if (errno != EEXIST && errno != ENOTEMPTY)
            fail_errno("cannot create the run directory {}", final_path);
        Fd other;  // released at the end of each turn
        switch (owner_of(final_path, other)) {
            case Owner::dead:
                remove_locked(final_path);  // fails if a sweep is faster, which is as good
                if (++lost > 1000) fail("cannot clear the run directory {}: remove it", final_path);
                break;
            case Owner::vanished:
                break;
            case Owner::alive:
                if (waited >= patience_ms) return {};  // ~RunDir removes the unborn one
                ::usleep(5000);
                waited += 5;
                break;
        }
    }
}

int sweep(const std::string& base) {
    int removed = 0;
    for (const std::string& name : entries(base)) {
        std::string path = base + "/" + name;
        if (name[0] == '.') {
            std::error_code ignored;
            if (is_litter(path, name)) fs::remove_all(path, ignored);
            continue;
        }
        Fd lock;
        if (owner_of(path, lock) == Owner::dead && remove_locked(path)) ++removed;
    }
    return removed;
}

std::vector<std::string> living(const std::string& base) {
    std::vector<std::string> names;
    for (const std::string& name : entries(base)) {
        if (name[0] == '.') continue;
        Fd lock;
        if (owner_of(base + "/" + name, lock) == Owner::alive) names.push_back(name);
    }
    return names;
}

}  // namespace fermata::job
