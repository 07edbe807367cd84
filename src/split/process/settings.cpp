// Directory, umask, limits, personality and the switches of prctl: what the application changed since it
// started. Settings that it did not change are the new node's.
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string>

#include "files/others_link.h"
#include "files/owners.h"
#include "split/process/children.h"
#include "split/process/parts.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"

namespace fermata::split::process {
namespace {

struct Switch {
    const char* name;
    int get, set;
    bool by_pointer;  // the answer is written to an int, not returned
};
// Switches of the whole process; those of one thread are in threads/own_attributes.cpp.
constexpr Switch kSwitches[] = {
    {"dumpable", PR_GET_DUMPABLE, PR_SET_DUMPABLE, false},
    {"thp_disable", PR_GET_THP_DISABLE, PR_SET_THP_DISABLE, false},
    {"memory_merge", 68 /* PR_GET_MEMORY_MERGE */, 67, false},
    {"child_subreaper", PR_GET_CHILD_SUBREAPER, PR_SET_CHILD_SUBREAPER, true},
};

struct Settings {
    rlimit limit[RLIM_NLIMITS];
    int personality;
    int value[std::size(kSwitches)];
};
Settings g_inherited;

Settings current_settings() {
    Settings now = {};
    for (int i = 0; i < RLIM_NLIMITS; ++i) getrlimit(static_cast<__rlimit_resource>(i), &now.limit[i]);
    // The main thread's is taken: each thread has its own, and the agent asks.
    now.personality =
        static_cast<int>(std::strtoul(read_proc("/proc/self/personality").c_str(), nullptr, 16));
    for (size_t i = 0; i < std::size(kSwitches); ++i) {
        int answer = 0;
        long result =
            raw::call(SYS_prctl, kSwitches[i].get, kSwitches[i].by_pointer ? raw::word(&answer) : 0);
        now.value[i] = kSwitches[i].by_pointer ? answer : static_cast<int>(result);
    }
    return now;
}

constexpr int kMembarrier = 324;
constexpr int kGetRegistrations = 1 << 9;  // Linux 6.3

// As a mask of the commands that register.
long membarrier_registrations() {
    if (long known = raw::call(kMembarrier, kGetRegistrations); known >= 0) return known;
    // Private barriers fail without theirs. Whether this process gets global ones cannot be seen: better it
    // does.
    long found = MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
    for (long barrier : {MEMBARRIER_CMD_PRIVATE_EXPEDITED, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE,
                         MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ})
        if (raw::call(kMembarrier, barrier) == 0) found |= barrier << 1;
    return found;
}

// Children would stay behind.
void warn_of_children(const std::vector<Child>& children, Lines& warnings) {
    for (const Child& child : children)
        if (!child.ended)
            warnings.push_back("child process " + std::to_string(child.pid) + " (" + child.name +
                               ") is not saved: after a restart it counts as killed");
}

}  // namespace

void note_settings() { g_inherited = current_settings(); }

Json noted_settings() {
    Json limits = Json::array();
    for (const rlimit& limit : g_inherited.limit)
        limits.push_back({static_cast<uint64_t>(limit.rlim_cur), static_cast<uint64_t>(limit.rlim_max)});
    return {{"limits", limits}, {"personality", g_inherited.personality}, {"switches", g_inherited.value}};
}

void resume_settings(const Json& noted) {
    for (int i = 0; i < RLIM_NLIMITS; ++i)
        g_inherited.limit[i] = {noted.at("limits").at(static_cast<size_t>(i)).at(0).get<rlim_t>(),
                                noted.at("limits").at(static_cast<size_t>(i)).at(1).get<rlim_t>()};
    g_inherited.personality = noted.at("personality");
    for (size_t i = 0; i < std::size(kSwitches); ++i) g_inherited.value[i] = noted.at("switches").at(i);
}

Json capture_settings(const std::vector<Child>& children, Lines& warnings) {
    Json state;
    char path[PATH_MAX] = {};
    ssize_t size = readlink("/proc/self/cwd", path, sizeof path - 1);
    std::string directory(path, size > 0 ? static_cast<size_t>(size) : 0);
    constexpr std::string_view kDeleted = " (deleted)";
    struct stat now = {}, there;
    bool known = stat("/proc/self/cwd", &now) == 0, deleted = known && now.st_nlink == 0;
    if (deleted && directory.ends_with(kDeleted)) directory.resize(directory.size() - kDeleted.size());
    if (!deleted && (stat(directory.c_str(), &there) != 0 || there.st_ino != now.st_ino))
        warnings.push_back("the working directory " + directory +
                           " cannot be reached by its name: a restart may fail");
    state["cwd"] = directory;
    state["cwd_deleted"] = deleted;
    if (known) state["cwd_owner"] = now.st_uid;
    state["umask"] = std::strtol(field(read_proc("/proc/self/status"), "Umask").c_str(), nullptr, 8);
    Settings settings = current_settings();
    Json limits = Json::array();
    for (int i = 0; i < RLIM_NLIMITS; ++i)
        if (settings.limit[i].rlim_cur != g_inherited.limit[i].rlim_cur ||
            settings.limit[i].rlim_max != g_inherited.limit[i].rlim_max)
            limits.push_back({i, static_cast<uint64_t>(settings.limit[i].rlim_cur),
                              static_cast<uint64_t>(settings.limit[i].rlim_max)});
    state["limits"] = limits;
    if (settings.personality != g_inherited.personality) state["personality"] = settings.personality;
    Json switches = Json::object();
    for (size_t i = 0; i < std::size(kSwitches); ++i)
        if (settings.value[i] != g_inherited.value[i]) switches[kSwitches[i].name] = settings.value[i];
    state["switches"] = switches;
    state["membarrier"] = membarrier_registrations();
    warn_of_children(children, warnings);
    return state;
}

Fd open_working_directory(const Json& state) {
    const std::string directory = state.at("cwd");
    auto refuse = [&](const std::string& why, const std::string& what) {
        throw Refused{"the working directory " + directory + " " + why + ": " + what + " and restart again"};
    };
    Fd fd(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!fd || faccessat(fd.get(), ".", X_OK, AT_EACCESS) != 0)
        refuse("cannot be entered: " + error_text(errno),
               "make it available on this node, or say where it is now with --map " + directory + "=NEW,");
    struct stat now;
    const auto owner = state.value("cwd_owner", geteuid());  // images of earlier builds do not have it
    if (fstat(fd.get(), &now) == 0 && state.contains("cwd_owner") && now.st_uid != owner &&
        !files::believed(now.st_uid))
        refuse("belongs to " + files::name_of_user(now.st_uid) + ", at the checkpoint to " +
                   files::name_of_user(owner),
               "put the program's back");
    if (const std::string link = files::others_link(directory, fd.get()); !link.empty())
        refuse("is not reached: " + link, "remove it, put the program's back");
    return fd;
}

void restore_settings(const Json& state, Lines& warnings) {
    std::string directory = state.at("cwd");
    if (state.at("cwd_deleted").get<bool>()) {
        // A directory that is nowhere: made and removed again.
        char name[] = "/tmp/fermata-cwd-XXXXXX";
        if (mkdtemp(name) == nullptr || chdir(name) != 0 || rmdir(name) != 0)
            warnings.push_back("the working directory had been removed and could not be imitated: it is " +
                               std::string(name));
    } else if (fchdir(open_working_directory(state).get()) != 0) {
        throw Refused{"the working directory " + directory + " cannot be entered: " + error_text(errno)};
    }
    umask(state.at("umask").get<mode_t>());
    restore_limits(state, warnings);
}

void restore_limits(const Json& state, Lines& warnings) {
    for (const Json& saved : state.at("limits")) {
        auto which = static_cast<__rlimit_resource>(saved.at(0).get<int>());
        rlimit limit;
        getrlimit(which, &limit);
        limit.rlim_cur = std::min<rlim_t>(saved.at(1).get<uint64_t>(), limit.rlim_max);
        if (limit.rlim_cur != saved.at(1).get<uint64_t>())
            warnings.push_back("resource limit " + std::to_string(saved.at(0).get<int>()) +
                               " is lower here: the hard limit does not allow the application's");
        // Lower again, never higher; descriptors need theirs for the lower half.
        if (saved.size() > 2 && which != RLIMIT_NOFILE)
            limit.rlim_max =
                std::max(limit.rlim_cur, std::min<rlim_t>(saved.at(2).get<uint64_t>(), limit.rlim_max));
        setrlimit(which, &limit);
    }
    if (state.contains("personality")) personality(state.at("personality").get<unsigned>());
    for (const Switch& one : kSwitches)
        if (state.at("switches").contains(one.name))
            raw::call(SYS_prctl, one.set, state.at("switches").at(one.name).get<long>(), 0, 0, 0);
    long registrations = state.at("membarrier");
    for (long bit = 1; bit <= registrations && bit > 0; bit <<= 1)
        if ((registrations & bit) != 0) raw::call(kMembarrier, bit);
}

}  // namespace fermata::split::process
