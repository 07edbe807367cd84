#include "cli/leftovers.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <set>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "base/host_name.h"
#include "base/text.h"
#include "files/folder.h"
#include "level/memory.h"
#include "level/place.h"
#include "tree/run_dir.h"

namespace fermata::cli {
namespace {

struct Left {
    uint64_t run_dirs = 0, levels = 0, bytes = 0, wanted = 0;
    bool any() const { return run_dirs + levels > 0; }
};

Left left_here() {
    Left left;
    for (const std::string& base : tree::run_bases()) left.run_dirs += tree::dead(base).size();
    for (const level::LeftBehind& one : level::left_behind()) {
        ++left.levels;
        left.bytes += one.bytes;
        left.wanted += one.wanted;
    }
    return left;
}

struct Looks {
    Left before, after;
};

Looks of_this_user(bool remove) {
    Looks both{left_here(), {}};
    if (remove) {
        for (const std::string& base : tree::run_bases()) tree::sweep(base);
        level::sweep(0, host_name());
    }
    both.after = left_here();
    return both;
}

// The user in "fermata-1000", "fermata-1000.2", "fermata-memory-1000".
std::optional<uid_t> user_in(const std::string& name) {
    size_t at = std::string::npos;
    for (const char* before : {"fermata-memory-", "fermata-local-", "fermata-"})
        if (name.starts_with(before)) {
            at = std::string(before).size();
            break;
        }
    if (at == std::string::npos) return {};
    uid_t user = 0;
    auto [end, error] = std::from_chars(name.data() + at, name.data() + name.size(), user);
    const bool whole = end == name.data() + name.size() || *end == '.';
    return error == std::errc{} && whole ? std::optional(user) : std::nullopt;
}

// Users who have a directory of such a name, which is theirs: anybody may make names in these places.
std::set<uid_t> users_here() {
    std::set<uid_t> users;
    for (const std::string& place : {tree::place_of_run_bases(), level::base_directory(Medium::memory),
                                     level::base_directory(Medium::local)})
        try {
            const auto folder = files::Folder::find_at(place);
            if (!folder) continue;
            for (const std::string& name : folder->names())
                if (auto user = user_in(name))
                    if (auto status = folder->look(name);
                        status && S_ISDIR(status->st_mode) && status->st_uid == *user)
                        users.insert(*user);
        } catch (const Error&) {
            // As if nothing were there.
        }
    return users;
}

// A child without root's rights looks; none: it could not.
std::optional<Looks> of_user(uid_t user, bool remove) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return {};
    Fd in(ends[0]), out(ends[1]);
    const pid_t pid = ::fork();
    if (pid < 0) return {};
    if (pid == 0) {
        // The group is nobody's: only what is the user's own is of interest.
        const gid_t nobody = 65534;
        if (::setgroups(0, nullptr) != 0 || ::setresgid(nobody, nobody, nobody) != 0 ||
            ::setresuid(user, user, user) != 0)
            ::_exit(1);
        const Looks both = of_this_user(remove);
        ::_exit(::write(out.get(), &both, sizeof both) == sizeof both ? 0 : 1);
    }
    out.reset();
    Looks both;
    size_t got = 0;
    while (got < sizeof both) {
        const ssize_t n = ::read(in.get(), reinterpret_cast<char*>(&both) + got, sizeof both - got);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        got += static_cast<size_t>(n);
    }
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return got == sizeof both ? std::optional(both) : std::nullopt;
}

void add(Left& sum, const Left& one) {
    sum.run_dirs += one.run_dirs;
    sum.levels += one.levels;
    sum.bytes += one.bytes;
    sum.wanted += one.wanted;
}

std::string words_of(const Left& left) {
    return fmt::format(
        "{} run directories, {} directories of generations in memory and on disk ({}, {} of them for a "
        "restart)",
        left.run_dirs, left.levels, human_size(left.bytes), left.wanted);
}

}  // namespace

Finding look_for_leftovers(bool remove) {
    Looks all;
    unsigned unseen = 0;
    std::set<uid_t> users = {::geteuid()};
    if (::geteuid() == 0) users.merge(users_here());
    for (uid_t user : users) {
        const auto one = user == ::geteuid() ? of_this_user(remove) : of_user(user, remove);
        if (!one) ++unseen;
        if (!one) continue;
        add(all.before, one->before);
        add(all.after, one->after);
    }
    const char* whose = ::geteuid() == 0 ? "of all users" : "of this user (root: of all)";
    std::string text;
    if (!all.before.any())
        text = fmt::format("nothing {}", whose);
    else if (remove)
        text = fmt::format("{}: {}; of them stay: {}", whose, words_of(all.before), words_of(all.after));
    else
        text = fmt::format(
            "{}: {}: memory and disk that others lack until the next job of that user here, or `fermata "
            "doctor --sweep`, "
            "removes what no restart wants; lib/fermata/slurm/epilog.sh does so after each job of Slurm's",
            whose, words_of(all.before));
    if (unseen > 0) text += fmt::format("; {} users could not be looked at", unseen);
    // Generations that a restart may want are no litter.
    return {"leftovers", all.after.run_dirs == 0 && all.after.levels <= all.after.wanted && unseen == 0,
            false, text};
}

}  // namespace fermata::cli
