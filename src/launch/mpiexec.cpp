#include "launch/mpiexec.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/process_limits.h"
#include "launch/launcher_options.h"

namespace fermata::launch {
namespace {

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
    const LauncherKind& kind = kind_of(plan.library.mpi);
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
    words.push_back(plan.library.lower);
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

// The variables of the launcher's process, which it hands on to the ranks.
void set_environment(const LaunchPlan& plan) {
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
    if (!plan.library.root.empty()) ::setenv("PMIX_MCA_gds", "hash", 0);
    // UCX patches memory functions of the whole process, and reads these before main. With hooks its
    // registration cache serves memory that the program has given back: wrong data. Not the user's to
    // choose.
    ::setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 1);
    ::setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 0);
    // hwloc's x86 component moves itself to each CPU in turn, which can take a minute on a busy machine
    // (docs/internals/job.md); what it asks there, hwloc's Linux component knows.
    ::setenv("HWLOC_COMPONENTS", "-x86", 0);
}

// In the child: what the launcher is to find, and what it is not to have of ours. Nothing throws here.
void become_launcher(const LaunchPlan& plan, int input, pid_t parent) {
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
    if (input >= 0) {
        ::dup2(input, 0);
    } else if (plan.no_input) {
        int null = ::open("/dev/null", O_RDONLY);
        ::dup2(null, 0);
        if (null > 0) ::close(null);
    }
    set_environment(plan);
}

}  // namespace

std::vector<std::string> command_of(const LaunchPlan& plan) {
    const LauncherKind& kind = kind_of(plan.library.mpi);
    std::vector<std::string> words = {plan.library.mpiexec};
    // Open MPI 5's does not ask the variables that Open MPI 4's does.
    if (kind.as_root && !plan.library.root.empty() && ::geteuid() == 0) words.push_back(kind.as_root);
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

void Mpiexec::start() {
    if (const char* hooks = std::getenv("UCX_MEM_MMAP_HOOK_MODE"); hooks && std::string_view(hooks) != "none")
        say(fmt::format(
            "UCX_MEM_MMAP_HOOK_MODE={} is not used: the ranks get none (UCX's hooks do not see the program's "
            "memory, and its messages would be wrong)",
            hooks));
    const std::string& mpiexec = plan_.library.mpiexec;
    std::vector<std::string> words = command_of(plan_);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    // Open MPI takes a launcher that is named by its path for --prefix: it would put folders of its own in
    // front of the ranks' PATH and LD_LIBRARY_PATH. Hydra looks for its other half beside itself, by that
    // path.
    std::string name = mpiexec.substr(mpiexec.rfind('/') + 1);
    if (plan_.library.mpi == "openmpi") argv[0] = name.data();
    int failed[2];
    if (::pipe2(failed, O_CLOEXEC) != 0) fail_errno("cannot create a pipe");
    Fd in(failed[0]), out(failed[1]);
    pid_t parent = ::getpid();
    pid_t pid = ::fork();
    if (pid < 0) fail_errno("cannot start {}", mpiexec);
    if (pid == 0) {
        become_launcher(plan_, input_ ? input_->launchers_end() : -1, parent);
        ::execv(mpiexec.c_str(), argv.data());
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
        fail("cannot run {}: {}", mpiexec, std::strerror(code));
    }
    pid_ = pid;
    if (input_) input_->launched();
}

std::optional<int> Mpiexec::ended() {
    int status;
    if (pid_ > 0 && !end_ && ::waitpid(pid_, &status, WNOHANG) == pid_)
        end_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return end_;
}

void Mpiexec::hand_on(int signal, bool to_all) {
    if (pid_ > 0 && !end_) ::kill(to_all ? -pid_ : pid_, signal);
}

void Mpiexec::ask_to_end() { hand_on(SIGTERM, false); }
void Mpiexec::kill() { hand_on(SIGKILL, false); }

void Mpiexec::add_to(std::vector<pollfd>& fds) {
    if (input_) input_->add_to(fds);
}

void Mpiexec::serve(const std::vector<pollfd>& fds, size_t first) {
    if (input_) input_->serve(fds, first);
}

}  // namespace fermata::launch
