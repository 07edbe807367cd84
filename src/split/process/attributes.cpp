// Attributes of the program and its threads that it has set, beside settings.cpp: CPUs, priorities, memory
// policies, what the kernel shall do in need. Changed since the start: restored; identity, namespaces,
// keyrings, filters for system calls and terminals: warned of by name.
#include <fmt/core.h>
#include <sched.h>
#include <sys/resource.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>

#include "base/invariant.h"
#include "split/address/maps.h"
#include "split/address/window.h"
#include "split/process/parts.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"

namespace fermata::split::process {
namespace {

using threads::OwnAttributes;
using threads::SavedThread;

constexpr long kNodes = long{OwnAttributes::kNodeWords} * 64;

// Files in /proc/self that say what the program has asked for, and take it again.
constexpr const char* kFiles[] = {"coredump_filter", "oom_score_adj"};
// Lines of /proc/self/status that a program cannot simply be given again.
constexpr struct {
    const char *key, *what;
} kIdentity[] = {{"Uid", "user ids"},
                 {"Gid", "group ids"},
                 {"Groups", "supplementary groups"},
                 {"CapInh", "inheritable capabilities"},
                 {"CapPrm", "permitted capabilities"},
                 {"CapEff", "effective capabilities"},
                 {"CapBnd", "bounding set of capabilities"},
                 {"CapAmb", "ambient capabilities"},
                 {"Seccomp", "filter for system calls (seccomp)"},
                 {"Seccomp_filters", "filters for system calls (seccomp)"}};
constexpr const char* kNamespaces[] = {"ns/mnt",
                                       "ns/net",
                                       "ns/ipc",
                                       "ns/uts",
                                       "ns/pid_for_children",
                                       "ns/user",
                                       "ns/cgroup",
                                       "ns/time_for_children",
                                       "root"};

struct Start {
    std::map<std::string, std::string> files, identity, links;
    cpu_set_t cpus = {};
    int session_keyring = 0;
    termios terminal[3] = {};
    bool is_terminal[3] = {};
};
Start g_start;

std::string word_of(const char* file) {
    std::string text = read_proc(std::string("/proc/self/") + file);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

std::string link_of(const std::string& name) {
    char target[4096];
    ssize_t size = readlink(("/proc/self/" + name).c_str(), target, sizeof target);
    return {target, size > 0 ? static_cast<size_t>(size) : 0};
}

Json cpus_of(int tid) {
    cpu_set_t set;
    if (sched_getaffinity(tid, sizeof set, &set) != 0) return nullptr;
    Json list = Json::array();
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &set)) list.push_back(cpu);
    return list;
}
Json list_of(const cpu_set_t& set) {
    Json list = Json::array();
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &set)) list.push_back(cpu);
    return list;
}

template <class F>
void for_each_stopped(F what) {
    threads::ThreadTable* all = threads::table();
    if (all == nullptr) return;
    for (uint32_t i = 0; i < all->high_water; ++i)
        if (all->record[i].run == Run::stopped) what(all->record[i], all->saved[i]);
}

// [[begin, size, mode, [words of the set of nodes]], …]: mappings with a policy of their own (mbind).
Json memory_policies() {
    Json list = Json::array();
    if (!threads::is_split()) return list;
    for (const Mapping& map : read_maps()) {
        if (!upper_range(map.range)) continue;
        int mode = 0;
        uint64_t nodes[OwnAttributes::kNodeWords] = {};
        constexpr long kOfAddress = 2;  // MPOL_F_ADDR
        if (raw::call(SYS_get_mempolicy, raw::word(&mode), raw::word(nodes), kNodes,
                      static_cast<long>(map.range.begin()), kOfAddress) != 0 ||
            mode == 0)
            continue;
        list.push_back({map.range.begin(), map.range.size(), mode, nodes});
    }
    return list;
}

void warn_of_identity(Lines& warnings) {
    std::string status = read_proc("/proc/self/status");
    for (auto [key, what] : kIdentity)
        if (std::string now = field(status, key); now != g_start.identity[key])
            warnings.push_back(
                fmt::format("the program has changed its {} ({} to {}): after a restart they are "
                            "those of the new start",
                            what, g_start.identity[key], now));
    for (const char* name : kNamespaces)
        if (std::string now = link_of(name); now != g_start.links[name])
            warnings.push_back(fmt::format(
                "the program has changed its {} ({} to {}): after a restart it is in "
                "that of the new start",
                std::strcmp(name, "root") == 0 ? "root directory" : "namespace", g_start.links[name], now));
}

void warn_of_keyrings(Lines& warnings) {
    for_each_stopped([&](const ThreadRecord&, const SavedThread& saved) {
        if (saved.own.keyrings != 0)
            warnings.push_back(fmt::format("thread {} has a keyring of its {}: its keys are not saved",
                                           saved.name, saved.own.keyrings == 1 ? "own" : "process"));
        if (saved.own.session_keyring > 0 && g_start.session_keyring > 0 &&
            saved.own.session_keyring != g_start.session_keyring)
            warnings.push_back(
                fmt::format("thread {} has joined another session keyring: after a restart it has "
                            "that of the new start",
                            saved.name));
    });
}

void warn_of_terminals(Lines& warnings) {
    for (int i = 0; i < 3; ++i) {
        termios now = {};
        int fd = inherited_descriptor(i);
        if (fd < 0 || !g_start.is_terminal[i] || tcgetattr(fd, &now) != 0) continue;
        const termios& before = g_start.terminal[i];
        if (now.c_iflag != before.c_iflag || now.c_oflag != before.c_oflag || now.c_cflag != before.c_cflag ||
            now.c_lflag != before.c_lflag)
            warnings.push_back(
                fmt::format("the settings of the terminal at descriptor {} were changed: after a "
                            "restart they are the new terminal's",
                            i));
    }
}

std::string name_of(const SavedThread& saved) {
    return fmt::format("thread {} ({})", saved.name, saved.old_tid);
}

void restore_priorities(Lines& warnings) {
    for_each_stopped([&](const ThreadRecord& record, const SavedThread& saved) {
        auto tid = static_cast<id_t>(record.tid);
        sched_param parameters = {};
        parameters.sched_priority = saved.priority;
        if (saved.policy > 0 && sched_getscheduler(record.tid) != saved.policy &&
            sched_setscheduler(record.tid, saved.policy, &parameters) != 0)
            warnings.push_back(fmt::format("{}: scheduling policy {} is not allowed here: {}", name_of(saved),
                                           saved.policy, error_text(errno)));
        if (saved.nice != 0 && getpriority(PRIO_PROCESS, tid) != saved.nice &&
            setpriority(PRIO_PROCESS, tid, saved.nice) != 0)
            warnings.push_back(fmt::format("{}: nice {} is not allowed here: {}", name_of(saved), saved.nice,
                                           error_text(errno)));
        constexpr long kThread = 1;  // IOPRIO_WHO_PROCESS
        if (saved.own.io_priority > 0 &&
            raw::call(SYS_ioprio_get, kThread, record.tid) != saved.own.io_priority &&
            raw::call(SYS_ioprio_set, kThread, record.tid, saved.own.io_priority) != 0)
            warnings.push_back(fmt::format("{}: its I/O priority is not allowed here", name_of(saved)));
    });
}

// Those of the main thread, which runs this, before it goes on; others have set theirs (threads/restart.cpp).
void restore_main(Lines& warnings) {
    threads::ThreadTable* all = threads::table();
    if (all == nullptr || all->record[threads::kMainIndex].run != Run::stopped) return;
    const OwnAttributes& wanted = all->saved[threads::kMainIndex].own;
    threads::set_own_attributes(&wanted);
    OwnAttributes now;
    threads::note_own_attributes(&now);
    if (wanted.memory_policy > 0 && now.memory_policy != wanted.memory_policy)
        warnings.push_back(
            "the policy for new memory (set_mempolicy) names NUMA nodes that this one has not: it is "
            "the default");
    if (wanted.secure_bits >= 0 && now.secure_bits != wanted.secure_bits)
        warnings.push_back("the secure bits (PR_SET_SECUREBITS) cannot be set here");
}

void restore_cpus(const Json& saved, Lines& warnings) {
    bool same_start = saved.at("start") == list_of(g_start.cpus);
    for (const Json& one : saved.at("threads")) {
        int tid = threads::new_tid(one.at(0));
        if (tid == 0) continue;
        cpu_set_t set;
        CPU_ZERO(&set);
        for (int cpu : one.at(1).get<std::vector<int>>())
            if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
        if (!same_start || sched_setaffinity(tid, sizeof set, &set) != 0 || cpus_of(tid) != one.at(1))
            warnings.push_back(
                fmt::format("thread {} had bound itself to CPUs {}: here the launcher gives {}, and it "
                            "may use all of them",
                            one.at(0).get<int>(), one.at(1).dump(), list_of(g_start.cpus).dump()));
    }
}

}  // namespace

void note_attributes() {
    threads::note_launchers_death_signal();
    for (const char* file : kFiles) g_start.files[file] = word_of(file);
    std::string status = read_proc("/proc/self/status");
    for (auto [key, what] : kIdentity) g_start.identity[key] = field(status, key);
    for (const char* name : kNamespaces) g_start.links[name] = link_of(name);
    sched_getaffinity(0, sizeof g_start.cpus, &g_start.cpus);
    constexpr long kGetId = 0, kSession = -3;
    g_start.session_keyring = static_cast<int>(raw::call(SYS_keyctl, kGetId, kSession, 0));
    for (int i = 0; i < 3; ++i) g_start.is_terminal[i] = tcgetattr(i, &g_start.terminal[i]) == 0;
}

Json noted_attributes() {
    Json terminals = Json::array();
    for (int i = 0; i < 3; ++i) {
        auto* bytes = reinterpret_cast<const uint8_t*>(&g_start.terminal[i]);
        terminals.push_back(g_start.is_terminal[i]
                                ? Json(std::vector<uint8_t>(bytes, bytes + sizeof g_start.terminal[i]))
                                : Json());
    }
    return {{"files", g_start.files},        {"identity", g_start.identity},       {"links", g_start.links},
            {"cpus", list_of(g_start.cpus)}, {"keyring", g_start.session_keyring}, {"terminals", terminals}};
}

void resume_attributes(const Json& noted) {
    threads::note_launchers_death_signal();
    g_start.files = noted.at("files");
    g_start.identity = noted.at("identity");
    g_start.links = noted.at("links");
    CPU_ZERO(&g_start.cpus);
    for (int cpu : noted.at("cpus").get<std::vector<int>>()) CPU_SET(cpu, &g_start.cpus);
    // The agent's thread, which made this process, may use more.
    sched_setaffinity(0, sizeof g_start.cpus, &g_start.cpus);
    g_start.session_keyring = noted.at("keyring");
    for (size_t i = 0; i < 3; ++i) {
        const Json& terminal = noted.at("terminals").at(i);
        g_start.is_terminal[i] = !terminal.is_null();
        if (terminal.is_null()) continue;
        auto bytes = terminal.get<std::vector<uint8_t>>();
        always(bytes.size() == sizeof g_start.terminal[i], "notes of a terminal that are none");
        std::memcpy(&g_start.terminal[i], bytes.data(), bytes.size());
    }
}

Json capture_attributes(Lines& warnings) {
    Json state, files = Json::object(), bound = Json::array();
    for (const char* file : kFiles)
        if (std::string now = word_of(file); now != g_start.files[file]) files[file] = now;
    state["files"] = files;
    Json start = list_of(g_start.cpus);
    for_each_stopped([&](const ThreadRecord& record, const SavedThread& saved) {
        if (Json cpus = cpus_of(record.tid); !cpus.is_null() && cpus != start)
            bound.push_back({saved.old_tid, cpus});
        if (saved.own.memory_policy == -1)
            warnings.push_back(fmt::format(
                "the memory policy of {} cannot be read: it comes back as the default", name_of(saved)));
    });
    state["cpus"] = {{"start", start}, {"threads", bound}};
    state["memory"] = memory_policies();
    warn_of_identity(warnings);
    warn_of_keyrings(warnings);
    warn_of_terminals(warnings);
    return state;
}

void restore_attributes(const Json& state, Lines& warnings) {
    for (const auto& [file, value] : state.at("files").items()) {
        std::ofstream(std::string("/proc/self/") + file)
            << (file == "coredump_filter" ? "0x" : "") << value.get<std::string>() << std::flush;
        if (word_of(file.c_str()) != value.get<std::string>())
            warnings.push_back(fmt::format("/proc/self/{} cannot be {} here: it is {}", file,
                                           value.get<std::string>(), word_of(file.c_str())));
    }
    restore_main(warnings);
    restore_priorities(warnings);
    restore_cpus(state.at("cpus"), warnings);
    for (const Json& one : state.at("memory")) {
        auto nodes = one.at(3).get<std::vector<uint64_t>>();
        nodes.resize(OwnAttributes::kNodeWords);
        constexpr long kMove = 2;  // MPOL_MF_MOVE
        auto begin = one.at(0).get<uint64_t>(), size = one.at(1).get<uint64_t>();
        long error = raw::call(SYS_mbind, static_cast<long>(begin), static_cast<long>(size),
                               one.at(2).get<int>(), raw::word(nodes.data()), kNodes, kMove);
        if (error != 0)
            warnings.push_back(
                fmt::format("{} KiB of memory at {:#x} were bound to NUMA nodes (mbind) that cannot be "
                            "asked for here: {}",
                            size >> 10, begin, error_text(static_cast<int>(-error))));
    }
}

}  // namespace fermata::split::process
