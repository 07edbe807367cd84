#include "launch/launch.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/process_limits.h"
#include "launch/library_at.h"

extern char** environ;

namespace fs = std::filesystem;

namespace fermata::launch {
namespace {

struct Kind {
    const char* mpi;
    std::vector<const char*> names;  // of its launcher, the unmistakable ones first
    const char* version_word;        // in the output of --version, for the ambiguous ones
    const char* oversubscribe;       // option needed for more ranks than cores, or nullptr
    const char* as_root;             // option needed by root, or nullptr
    const char* export_option;  // passes one variable to ranks on other nodes, or nullptr: all are passed
};

const std::vector<Kind>& kinds() {
    static const std::vector<Kind> all = {
        {"openmpi",
         {"mpiexec.openmpi", "mpirun.openmpi", "orterun", "mpiexec"},
         "Open MPI|OpenRTE|prte",
         "--oversubscribe",
         "--allow-run-as-root",
         "-x"},
        {"mpich", {"mpiexec.mpich", "mpiexec.hydra", "mpiexec"}, "HYDRA|MPICH", nullptr, nullptr, nullptr},
    };
    return all;
}

const Kind& kind_of(const std::string& mpi) {
    for (const Kind& kind : kinds())
        if (mpi == kind.mpi) return kind;
    fail("no MPI library is called {}", mpi);
}

std::string in_path(const std::string& name) {
    const char* path = std::getenv("PATH");
    std::string text = path ? path : "/usr/local/bin:/usr/bin:/bin";
    for (size_t at = 0; at <= text.size();) {
        size_t end = std::min(text.find(':', at), text.size());
        std::string file = (end > at ? text.substr(at, end - at) : ".") + "/" + name;
        std::error_code ignored;
        if (::access(file.c_str(), X_OK) == 0 && fs::is_regular_file(file, ignored))
            return fs::absolute(file).lexically_normal().string();
        at = end + 1;
    }
    return {};
}

std::string output_of(const std::string& program, const char* argument) {
    int pipe_fds[2];
    if (::pipe2(pipe_fds, O_CLOEXEC) != 0) return {};
    Fd in(pipe_fds[0]), out(pipe_fds[1]);
    pid_t pid = ::fork();
    if (pid == 0) {
        int null = ::open("/dev/null", O_RDWR);
        ::dup2(null, 0);
        ::dup2(out.get(), 1);
        ::dup2(out.get(), 2);
        give_back_limits();
        ::alarm(10);  // survives exec: a launcher that hangs ends
        ::execl(program.c_str(), program.c_str(), argument, nullptr);
        ::_exit(127);
    }
    out.reset();
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = ::read(in.get(), buffer, sizeof buffer)) != 0;) {
        if (n < 0 && errno != EINTR) break;
        if (n > 0 && text.size() < 65536) text.append(buffer, static_cast<size_t>(n));
    }
    if (pid > 0) ::waitpid(pid, nullptr, 0);
    return text;
}

bool has_word(const std::string& text, const std::string& alternatives) {
    for (size_t at = 0; at < alternatives.size();) {
        size_t end = std::min(alternatives.find('|', at), alternatives.size());
        if (text.find(alternatives.substr(at, end - at)) != std::string::npos) return true;
        at = end + 1;
    }
    return false;
}

std::string find_mpiexec(const Kind& kind) {
    for (const char* name : kind.names) {
        std::string found = in_path(name);
        if (found.empty()) continue;
        if (std::string(name) != "mpiexec" || has_word(output_of(found, "--version"), kind.version_word))
            return found;
    }
    return {};
}

// Open MPI counts cores, not hardware threads, as slots.
int cores() {
    std::set<std::string> seen;
    for (int cpu = 0; cpu < 4096; ++cpu) {
        std::string path = fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu);
        if (::access(path.c_str(), R_OK) != 0) continue;
        try {
            seen.insert(read_file(path));
        } catch (const Error&) {
        }
    }
    cpu_set_t mine;
    int allowed = ::sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : 1;
    return seen.empty() ? allowed : std::min<int>(static_cast<int>(seen.size()), allowed);
}

// Another authority than the local machine says how many ranks fit.
bool slots_are_given(const std::vector<std::string>& args) {
    for (const char* name : {"SLURM_JOB_ID", "PBS_NODEFILE", "LSB_JOBID", "PE_HOSTFILE"})
        if (std::getenv(name)) return true;
    for (const std::string& arg : args)
        for (const char* word : {"host", "--map-by", "-map-by", "rankfile", "oversubscribe"})
            if (arg.find(word) != std::string::npos) return true;
    return false;
}

// One program's words, and those that every rank needs.
void add_part(std::vector<std::string>& words, const Part& part, const LaunchPlan& plan) {
    const Kind& kind = kind_of(plan.launcher.mpi);
    if (part.ranks > 0) {
        words.push_back("-n");
        words.push_back(std::to_string(part.ranks));
    }
    std::vector<std::string> given = split_words(part.mpiexec_args);
    words.insert(words.end(), given.begin(), given.end());
    // By name only: the values stand in the environment, where other users cannot read them.
    if (kind.export_option)
        for (auto& [name, value] : plan.environment) {
            words.push_back(kind.export_option);
            words.push_back(name);
        }
    words.push_back(plan.launcher.lower);
    if (!part.program.empty()) {
        const std::string& place = part.program_path;
        if (!place.empty() && place != part.program[0])
            words.insert(words.end(), {"--argv0", part.program[0]});
        words.push_back("--");
        words.push_back(place.empty() ? part.program[0] : place);
        words.insert(words.end(), part.program.begin() + 1, part.program.end());
    }
}

// `stty tostop` stops who writes to the terminal from another group than its foreground one.
void write_to_terminal_from_the_background() {
    for (int fd : {1, 2}) {
        termios modes;
        if (::tcgetattr(fd, &modes) == 0 && (modes.c_lflag & TOSTOP)) ::signal(SIGTTOU, SIG_IGN);
    }
}

}  // namespace

Places find_places() {
    std::error_code error;
    fs::path self = fs::read_symlink("/proc/self/exe", error);
    fs::path prefix = self.parent_path().parent_path();
    Places places{(prefix / "libexec/fermata").string(), (prefix / "lib/fermata/fronts").string()};
    if (const char* given = std::getenv("FERMATA_LIBEXEC"); given && *given)
        places.libexec = fs::absolute(given);
    return places;
}

std::vector<Launcher> all_launchers(const Places& places) {
    std::vector<Launcher> all;
    for (const Kind& kind : kinds()) {
        Launcher launcher;
        launcher.mpi = kind.mpi;
        std::string lower = places.libexec + "/lower-" + kind.mpi;
        if (::access(lower.c_str(), X_OK) == 0) launcher.lower = lower;
        launcher.mpiexec = find_mpiexec(kind);
        all.push_back(launcher);
    }
    return all;
}

Launcher choose_launcher(const std::string& wanted, const std::string& preferred, const Places& places) {
    if (names_a_place(wanted)) return launcher_at(wanted, places);
    std::vector<Launcher> all = all_launchers(places);
    auto named = [&](const std::string& mpi) {
        return std::find_if(all.begin(), all.end(), [&](const Launcher& l) { return l.mpi == mpi; });
    };
    std::string mpi = wanted == "auto" ? preferred : wanted;
    if (mpi.empty()) {
        auto any = std::find_if(all.begin(), all.end(), [](const Launcher& l) { return l.usable(); });
        if (any != all.end()) return *any;
        mpi = all.front().mpi;
    }
    auto found = named(mpi);
    if (found == all.end())
        throw Error(
            fmt::format("no MPI library is called {}: --mpi takes openmpi, mpich, auto or the path of one",
                        mpi),
            ExitCode::usage);
    if (found->usable()) return *found;
    // Any library will do unless the user asked for this one.
    auto other = std::find_if(all.begin(), all.end(), [](const Launcher& l) { return l.usable(); });
    if (wanted == "auto" && other != all.end()) return *other;
    if (found->lower.empty())
        fail("no lower half for {} in {}: was Fermata built where this library is installed?", mpi,
             places.libexec);
    fail("no mpiexec of {} in PATH ({}): install it, or load its module", mpi,
         fmt::join(kind_of(mpi).names, ", "));
}

std::string version_of(const Launcher& launcher) {
    if (launcher.mpiexec.empty()) return {};
    std::string text = output_of(launcher.mpiexec, "--version");
    // Hydra's first line says nothing; its version stands in one of its own.
    auto at = text.find("Version:");
    if (at != std::string::npos) {
        auto from = text.find_first_not_of(" \t", at + 8);
        return "MPICH " + text.substr(from, text.find('\n', from) - from);
    }
    return text.substr(0, text.find('\n'));
}

std::vector<std::string> split_words(const std::string& text) {
    std::vector<std::string> words;
    std::string word;
    bool open = false;
    char quote = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (quote) {
            if (c == quote)
                quote = 0;
            else if (c == '\\' && quote == '"' && i + 1 < text.size())
                word += text[++i];
            else
                word += c;
        } else if (c == '\'' || c == '"') {
            quote = c;
            open = true;
        } else if (c == '\\' && i + 1 < text.size()) {
            word += text[++i];
            open = true;
        } else if (c == ' ' || c == '\t' || c == '\n') {
            if (open) words.push_back(std::move(word));
            word.clear();
            open = false;
        } else {
            word += c;
            open = true;
        }
    }
    if (quote)
        throw Error(fmt::format("--mpiexec-args has an unclosed {}: {}", quote, text), ExitCode::usage);
    if (open) words.push_back(std::move(word));
    return words;
}

std::vector<std::string> command_of(const LaunchPlan& plan) {
    const Kind& kind = kind_of(plan.launcher.mpi);
    std::vector<std::string> words = {plan.launcher.mpiexec};
    // Open MPI 5's does not ask the variables that Open MPI 4's does.
    if (kind.as_root && !plan.launcher.root.empty() && ::geteuid() == 0) words.push_back(kind.as_root);
    int ranks = plan.ranks;
    bool given = slots_are_given(split_words(plan.mpiexec_args));
    for (const Part& part : plan.more) {
        ranks += part.ranks;
        given = given || slots_are_given(split_words(part.mpiexec_args));
    }
    if (kind.oversubscribe && ranks > cores() && !given) words.push_back(kind.oversubscribe);
    add_part(words, plan, plan);
    for (const Part& part : plan.more) {
        words.push_back(":");
        add_part(words, part, plan);
    }
    return words;
}

pid_t start(const LaunchPlan& plan) {
    if (const char* hooks = std::getenv("UCX_MEM_MMAP_HOOK_MODE"); hooks && std::string_view(hooks) != "none")
        say(fmt::format(
            "UCX_MEM_MMAP_HOOK_MODE={} is not used: the ranks get none (UCX's hooks do not see the program's "
            "memory, and its messages would be wrong)",
            hooks));
    std::vector<std::string> words = command_of(plan);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    // Open MPI takes a launcher that is named by its path for --prefix: it would put folders of its own in
    // front of the ranks' PATH and LD_LIBRARY_PATH. Hydra looks for its other half beside itself, by that
    // path.
    std::string name = plan.launcher.mpiexec.substr(plan.launcher.mpiexec.rfind('/') + 1);
    if (plan.launcher.mpi == "openmpi") argv[0] = name.data();
    int failed[2];
    if (::pipe2(failed, O_CLOEXEC) != 0) fail_errno("cannot create a pipe");
    Fd in(failed[0]), out(failed[1]);
    pid_t parent = ::getpid();
    pid_t pid = ::fork();
    if (pid < 0) fail_errno("cannot start {}", plan.launcher.mpiexec);
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::signal(SIGPIPE, SIG_DFL);
        give_back_limits();
        // A supervisor that is killed takes its job with it.
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (::getppid() != parent) ::_exit(1);
        // What a shell, a terminal or a batch system sends to Fermata's group reaches Fermata alone.
        ::setpgid(0, 0);
        write_to_terminal_from_the_background();
        if (plan.input >= 0) {
            ::dup2(plan.input, 0);
        } else if (plan.no_input) {
            int null = ::open("/dev/null", O_RDONLY);
            ::dup2(null, 0);
            if (null > 0) ::close(null);
        }
        for (auto& [name, value] : plan.environment) ::setenv(name.c_str(), value.c_str(), 1);
        if (::geteuid() == 0) {
            ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
            ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
        }
        // Registration caches do not see the upper half's munmap (docs/internals/job.md): off, unless the
        // user knows better.
        ::setenv("OMPI_MCA_mpi_leave_pinned", "0", 0);
        ::setenv("FI_MR_CACHE_MONITOR", "disabled", 0);
        // Open MPI 4.1's window component ucx takes every window and, without RDMA adapters, fails to make
        // it.
        if (::access("/sys/class/infiniband", F_OK) != 0) ::setenv("OMPI_MCA_osc", "^ucx", 0);
        // Open MPI 5's shared store wants an address that the upper half has.
        if (!plan.launcher.root.empty()) ::setenv("PMIX_MCA_gds", "hash", 0);
        // UCX patches memory functions of the whole process, and reads these before main. With hooks its
        // registration cache serves memory that the program has given back: wrong data. Not the user's to
        // choose.
        ::setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 1);
        ::setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 0);
        // hwloc's x86 component moves itself to each CPU in turn, which can take a minute on a busy machine
        // (docs/internals/job.md); what it asks there, hwloc's Linux component knows.
        ::setenv("HWLOC_COMPONENTS", "-x86", 0);
        ::execv(plan.launcher.mpiexec.c_str(), argv.data());
        int code = errno;
        [[maybe_unused]] ssize_t n = ::write(out.get(), &code, sizeof code);
        ::_exit(127);
    }
    ::setpgid(pid, pid);  // here, too: nobody knows who comes first
    out.reset();
    int code = 0;
    ssize_t n;
    do n = ::read(in.get(), &code, sizeof code);
    while (n < 0 && errno == EINTR);
    if (n == static_cast<ssize_t>(sizeof code)) {
        ::waitpid(pid, nullptr, 0);
        fail("cannot run {}: {}", plan.launcher.mpiexec, std::strerror(code));
    }
    return pid;
}

}  // namespace fermata::launch
