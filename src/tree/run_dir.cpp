#include "tree/run_dir.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <ctime>

#include "base/error.h"
#include "base/log.h"
#include "files/owners.h"
#include "tree/shared_names.h"

namespace fermata::tree {
namespace {

using files::Folder;

constexpr const char* kLock = "lock";
constexpr std::string_view kMarker = "fermata run directory 1\n";
constexpr const char* kLinks = "mpi";     // noded/library_links.h: each has more behind it
constexpr const char* kHelper = "pmix-";  // pmi/helper/main.cpp; libpmix fills it
constexpr const char* kStarterLink = "libfermata-starter.so";  // lower/starter.h
constexpr int kOtherBases = 9;
constexpr int kDyingMs = 1000;  // a process of many GiB that has been killed

// Temporary names tell the process that uses them: .new-<pid>-<n>-<time> is being born, .dead-… being
// removed.
std::string temporary(const char* kind) {
    static std::atomic<unsigned> count{0};
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return fmt::format(".{}-{}-{}-{}", kind, ::getpid(), count++, now.tv_nsec);
}

// The process in such a name; 0 when it is not exactly one.
pid_t process_in(const std::string& name) {
    std::string_view rest = name;
    for (std::string_view kind : {".new-", ".dead-"})
        if (rest.starts_with(kind)) rest = rest.substr(kind.size());
    if (rest.size() == name.size()) return 0;
    uint64_t numbers[3];
    for (int i = 0; i < 3; ++i) {
        auto [at, error] = std::from_chars(rest.data(), rest.data() + rest.size(), numbers[i]);
        if (error != std::errc{}) return 0;
        rest = rest.substr(static_cast<size_t>(at - rest.data()));
        if (i < 2 ? !rest.starts_with("-") : !rest.empty()) return 0;
        if (i < 2) rest = rest.substr(1);
    }
    return numbers[0] > 0 && numbers[0] < (1u << 30) ? static_cast<pid_t>(numbers[0]) : 0;
}

bool is_run_dir(const Folder& dir) {
    try {
        return dir.owner() == ::geteuid() && dir.has(kLock) && dir.text(kLock, 4096).starts_with(kMarker);
    } catch (const Error&) {
        return false;
    }
}

enum class Owner { alive, dead, vanished, foreign };

// Looks whether somebody holds the lock of `name`. When nobody does, `lock` holds it on return.
Owner owner_of(const Folder& base, const std::string& name, Fd& lock) {
    // Through a descriptor of the directory: the name may change its meaning at any moment.
    auto dir = base.find(name);
    if (!dir) return base.has(name) ? Owner::foreign : Owner::vanished;
    if (!is_run_dir(*dir)) return dir->is(base, name) ? Owner::foreign : Owner::vanished;
    Fd fd;
    try {
        fd = dir->write(kLock);
    } catch (const Error&) {
        return Owner::vanished;
    }
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return Owner::alive;
    // Until the lock was ours the directory may have been removed, and its name given to a newborn.
    if (!dir->is(base, name)) return Owner::vanished;
    lock = std::move(fd);
    return Owner::dead;
}

// Files, sockets and directories of those, as libpmix makes them; at most so deep.
bool is_plain(const Folder& dir, int depth) {
    for (const std::string& name : dir.names()) {
        auto status = dir.look(name);
        if (!status || S_ISSOCK(status->st_mode) || S_ISREG(status->st_mode)) continue;
        auto below = dir.find(name);
        if (depth == 0 || !below || !is_plain(*below, depth - 1)) return false;
    }
    return true;
}

void remove_plain(const Folder& dir) {
    for (const std::string& name : dir.names()) {
        if (auto below = dir.find(name)) {
            remove_plain(*below);
            dir.remove_empty(name);
        } else {
            dir.remove_file(name);
        }
    }
}

bool is_helpers(const Folder& dir, const std::string& name) {
    constexpr int kDepth = 3;
    if (!name.starts_with(kHelper)) return false;
    auto below = dir.find(name);
    return below && below->owner() == ::geteuid() && is_plain(*below, kDepth);
}

// Nothing in it but what a run directory has.
bool holds_only_ours(const Folder& dir) {
    for (const std::string& name : dir.names()) {
        auto status = dir.look(name);
        if (!status || S_ISSOCK(status->st_mode) || S_ISREG(status->st_mode)) continue;
        if (name == kStarterLink && S_ISLNK(status->st_mode)) continue;
        if (is_helpers(dir, name)) continue;
        if (!name.starts_with(kLinks) || !S_ISDIR(status->st_mode)) return false;
        Folder links = dir.below(name);
        for (const std::string& link : links.names())
            if (auto what = links.look(link); what && !S_ISLNK(what->st_mode)) return false;
    }
    return true;
}

// The lock goes last: what a crash leaves is swept another time.
void empty_out(const Folder& dir) {
    for (const std::string& name : dir.names()) {
        if (auto links = name.starts_with(kLinks) ? dir.find(name) : std::nullopt) {
            for (const std::string& link : links->names()) links->remove_file(link);
            dir.remove_empty(name);
        }
        if (is_helpers(dir, name)) {
            remove_plain(dir.below(name));
            dir.remove_empty(name);
        }
        if (name != kLock) dir.remove_file(name);
    }
    dir.remove_file(kLock);
}

// Only for the holder of its lock. First the name, then the content: nobody ever sees half a directory.
bool remove_locked(const std::string& path) noexcept {
    try {
        auto [base_path, name] = files::split_path(path);
        Folder base = Folder::at(base_path);
        Folder dir = base.below(name);
        if (!is_run_dir(dir) || !holds_only_ours(dir)) return false;
        std::string grave = temporary("dead");
        if (!base.rename(name, grave)) return false;
        empty_out(dir);
        base.remove_empty(grave);
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

// A temporary directory whose process is gone. It must also be old: a process of another pid namespace looks
// gone. Its marker may not have been written yet: then it is empty.
void remove_litter(const Folder& base, const std::string& name) noexcept {
    try {
        pid_t pid = process_in(name);
        if (pid == 0 || ::kill(pid, 0) == 0 || errno != ESRCH) return;
        auto status = base.look(name);
        if (!status || !S_ISDIR(status->st_mode) || ::time(nullptr) - status->st_mtime <= 60) return;
        auto dir = base.find(name);
        if (!dir || dir->owner() != ::geteuid()) return;
        if (is_run_dir(*dir) && holds_only_ours(*dir)) empty_out(*dir);
        base.remove_empty(name);
    } catch (const std::exception&) {
    }
}

// Removes what ranks of a node daemon that was killed have left in /dev/shm. Returns false where somebody
// uses some of it, as ranks do that have been killed and are not gone yet: the notes of it stay.
bool remove_shared(const Folder& base, const std::string& name) {
    auto dir = base.find(name);
    if (!dir) return true;
    SharedNames left(std::move(*dir));
    left.all_gone();
    left.remove_unused();
    return left.empty();
}

std::vector<std::string> entries(const Folder& base) {
    try {
        return base.names();
    } catch (const Error&) {
        return {};
    }
}

std::string base_name(int number) {
    return number == 0 ? fmt::format("fermata-{}", ::geteuid())
                       : fmt::format("fermata-{}.{}", ::geteuid(), number);
}

// This user's and closed to others?
bool serves(const std::optional<Folder>& base) {
    return base && base->owner() == ::geteuid() && (base->mode() & 077) == 0;
}

}  // namespace

std::string place_of_run_bases() {
    const char* given = std::getenv("FERMATA_RUN_DIR");
    return given && *given ? files::absolute_path(given) : "/tmp";
}

std::string run_base() {
    std::string parent_path = place_of_run_bases();
    files::make_path(parent_path);
    Folder parent = Folder::at(parent_path);
    for (int number = 0; number <= kOtherBases; ++number) {
        std::string name = base_name(number);
        if (!parent.own(name)) continue;
        if (number > 0)
            say(fmt::format("{} is not a directory of yours with mode 0700: {} is used instead",
                            parent.path_of(base_name(0)), parent.path_of(name)));
        return parent.path_of(name);
    }
    fail(
        "no directory in {} can be used for what belongs to running jobs: {} and {} others of this name are "
        "not yours with mode 0700; name another place with FERMATA_RUN_DIR, the same on every node",
        parent_path, base_name(0), kOtherBases);
}

std::vector<std::string> run_bases() {
    std::vector<std::string> bases;
    auto parent = Folder::find_at(place_of_run_bases());
    for (int number = 0; parent && number <= kOtherBases; ++number)
        if (serves(parent->find(base_name(number)))) bases.push_back(parent->path_of(base_name(number)));
    return bases;
}

void ensure_run_base(const std::string& base) {
    auto [parent_path, name] = files::split_path(base);
    files::make_path(parent_path);
    Folder parent = Folder::at(parent_path);
    if (!parent.own(name))
        fail(
            "{} on this node is not a directory of yours with mode 0700: name another place with "
            "FERMATA_RUN_DIR, the same on every node",
            base);
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

RunDir RunDir::create(const std::string& base_path, const std::string& name,
                      const std::function<void(const std::string&)>& fill, int patience_ms) {
    RunDir dir;
    Folder base = Folder::at(base_path);
    // Under the temporary name nobody touches it (remove_litter), unless it takes a minute to be filled and
    // this process looks dead from another pid namespace: then the steps below fail and the birth is tried
    // again.
    std::string born;
    for (int attempt = 0;; ++attempt) {
        born = temporary("new");
        std::optional<Folder> made;
        try {
            made = base.make(born);
            if (!made) fail("cannot create the run directory {}: the name is taken", base.path_of(born));
            dir.lock_ = made->create(kLock);
            if (::flock(dir.lock_.get(), LOCK_EX | LOCK_NB) != 0)
                fail_errno("cannot lock {}", made->path_of(kLock));
            write_all(dir.lock_.get(), kMarker.data(), kMarker.size(), made->path_of(kLock));
            if (fill) fill(made->path());
            dir.path_ = made->path();
            break;
        } catch (const Error&) {
            dir.lock_.reset();
            bool gone = !base.has(born);
            if (made) empty_out(*made);
            base.remove_empty(born);
            if (!gone || attempt == 4) throw;
        }
    }
    for (int waited = 0, dying = 0, lost = 0;;) {
        // rename replaces an empty directory only; one with a lock file in it stays: EEXIST or ENOTEMPTY.
        if (base.rename(born, name)) {
            dir.path_ = base.path_of(name);
            return dir;
        }
        if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
            fail_errno("cannot create the run directory {}", base.path_of(name));
        Fd other;  // released at the end of each turn
        switch (owner_of(base, name, other)) {
            case Owner::dead:
                if (dying < kDyingMs && !remove_shared(base, name)) {
                    ::usleep(20'000);  // each look goes through all processes
                    dying += 20;
                    break;
                }
                remove_locked(base.path_of(name));  // fails if a sweep is faster, which is as good
                if (++lost > 1000)
                    fail(
                        "{} is left of a job that is gone, and holds what Fermata did not put there: give "
                        "the "
                        "job another name with --job",
                        base.path_of(name));
                break;
            case Owner::vanished:
                break;
            case Owner::foreign:
                fail("{} is in the way, and Fermata did not make it: give the job another name with --job",
                     base.path_of(name));
            case Owner::alive:
                if (waited >= patience_ms) return {};  // ~RunDir removes the unborn one
                ::usleep(5000);
                waited += 5;
                break;
        }
    }
}

int sweep(const std::string& base_path) {
    auto base = Folder::find_at(base_path);
    if (!base) return 0;
    int removed = 0;
    for (const std::string& name : entries(*base)) {
        if (name[0] == '.') {
            remove_litter(*base, name);
            continue;
        }
        try {
            Fd lock;
            if (owner_of(*base, name, lock) != Owner::dead) continue;
            if (!remove_shared(*base, name)) continue;  // the next sweep will
            if (remove_locked(base->path_of(name))) ++removed;
        } catch (const Error&) {
        }
    }
    return removed;
}

namespace {

std::vector<std::string> names_of(const std::string& base_path, Owner owner) {
    std::vector<std::string> names;
    auto base = Folder::find_at(base_path);
    if (!base) return names;
    for (const std::string& name : entries(*base)) {
        if (name[0] == '.') continue;
        try {
            Fd lock;
            if (owner_of(*base, name, lock) == owner) names.push_back(name);
        } catch (const Error&) {
        }
    }
    return names;
}

}  // namespace

std::vector<std::string> living(const std::string& base) { return names_of(base, Owner::alive); }
std::vector<std::string> dead(const std::string& base) { return names_of(base, Owner::dead); }

}  // namespace fermata::tree
