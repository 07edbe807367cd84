#include "launch/launcher_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/fd.h"
#include "base/process_limits.h"
#include "launch/library_at.h"
#include "launch/rank_environment.h"
#include "launch/session_name.h"

namespace fermata::launch {
namespace {

constexpr int kNumberIsTaken = -1;  // beside those of errno
constexpr int kMostNumbers = 1000;  // in a container the next numbers of processes may all be taken

// `stty tostop` stops who writes to the terminal from another group than its foreground one.
void write_to_terminal_from_the_background() {
    for (int fd : {1, 2}) {
        termios modes;
        if (::tcgetattr(fd, &modes) == 0 && (modes.c_lflag & TOSTOP)) ::signal(SIGTTOU, SIG_IGN);
    }
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
    // Signals of a shell, a terminal or a batch system for Fermata's group reach Fermata alone.
    ::setpgid(0, 0);
    write_to_terminal_from_the_background();
    if (input >= 0) {
        ::dup2(input, 0);
    } else if (plan.no_input) {
        int null = ::open("/dev/null", O_RDONLY);
        ::dup2(null, 0);
        if (null > 0) ::close(null);
    }
    set_rank_environment(plan);
}

}  // namespace

std::vector<std::string> rank_command(const Part& part, const LaunchPlan& plan) {
    std::vector<std::string> words = words_to_reach(plan.library);
    words.push_back(plan.library.lower);
    if (part.program.empty()) return words;
    const std::string& place = part.program_path;
    if (!place.empty() && place != part.program[0]) words.insert(words.end(), {"--argv0", part.program[0]});
    words.push_back("--");
    words.push_back(place.empty() ? part.program[0] : place);
    words.insert(words.end(), part.program.begin() + 1, part.program.end());
    return words;
}

// Gives 0, or the number of the error for which the launcher could not be started. `taken`: numbers that its
// process may not have.
int LauncherProcess::try_to_start(const CommandLine& command, char* const* argv,
                                  const std::set<pid_t>& taken) {
    int failed[2];
    if (::pipe2(failed, O_CLOEXEC) != 0) fail_errno("cannot create a pipe");
    Fd in(failed[0]), out(failed[1]);
    pid_t parent = ::getpid();
    pid_t pid = ::fork();
    if (pid < 0) fail_errno("cannot start {}", command.file);
    if (pid == 0) {
        become_launcher(plan_, input_ ? input_->launchers_end() : -1, parent);
        for (const std::string& name : command.unset) ::unsetenv(name.c_str());
        if (!command.libraries.empty()) ::setenv("LD_LIBRARY_PATH", command.libraries.c_str(), 1);
        int code = kNumberIsTaken;
        if (!taken.contains(::getpid())) {
            ::execv(command.file.c_str(), argv);
            code = errno;
        }
        [[maybe_unused]] ssize_t n = ::write(out.get(), &code, sizeof code);
        ::_exit(127);
    }
    ::setpgid(pid, pid);  // here, too: nobody knows who comes first
    out.reset();
    int code = 0;
    ssize_t n;
    do n = ::read(in.get(), &code, sizeof code);
    while (n < 0 && errno == EINTR);
    if (n != static_cast<ssize_t>(sizeof code)) {
        pid_ = pid;
        return 0;
    }
    ::waitpid(pid, nullptr, 0);
    return code;
}

void LauncherProcess::start() {
    warn_of_unused_variables();
    CommandLine command = command_line();
    std::vector<char*> argv;
    for (std::string& word : command.words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const char* searched = std::getenv("LD_LIBRARY_PATH");
    if (searched && *searched && !command.libraries.empty())
        command.libraries = fmt::format("{}:{}", searched, command.libraries);
    std::set<pid_t> taken;
    if (plan_.library.mpi == "openmpi") {
        taken = numbers_with_a_session();
        shared_directory_.hold();
    }
    int code = kNumberIsTaken;
    for (int tries = 0; tries < kMostNumbers && code == kNumberIsTaken; ++tries)
        code = try_to_start(command, argv.data(), taken);
    if (code == kNumberIsTaken)
        fail(
            "cannot run {}: directories prte*.NUMBER.{} or ompi.NUMBER of launchers that are gone are in its "
            "way: remove them from $TMPDIR (else /tmp)",
            command.file, ::geteuid());
    if (code != 0) fail("cannot run {}: {}", command.file, std::strerror(code));
    if (input_) input_->launched();
}

std::optional<int> LauncherProcess::ended() {
    int status;
    if (pid_ > 0 && !end_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
        end_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        shared_directory_.release();
    }
    return end_;
}

void LauncherProcess::hand_on(int signal, bool to_all) {
    if (pid_ > 0 && !end_) ::kill(to_all ? -pid_ : pid_, signal);
}

void LauncherProcess::ask_to_end() { hand_on(SIGTERM, false); }
void LauncherProcess::kill() { hand_on(SIGKILL, false); }

void LauncherProcess::add_to(std::vector<pollfd>& fds) {
    if (input_) input_->add_to(fds);
}

void LauncherProcess::serve(const std::vector<pollfd>& fds, size_t first) {
    if (input_) input_->serve(fds, first);
}

}  // namespace fermata::launch
