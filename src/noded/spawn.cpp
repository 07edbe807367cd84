#include "noded/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/invariant.h"
#include "base/process_limits.h"
#include "noded/cores.h"

namespace fermata::noded {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
    std::vector<char*> list;
    for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
    list.push_back(nullptr);
    return list;
}

// The child's error, for its parent.
struct Failure {
    int code = 0;
    bool directory = false;
};

// In the child: nothing throws or allocates here.
[[noreturn]] void become_rank(const SpawnSpec& spec, char* const* words, char* const* environment,
                              pid_t daemon, int failed) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != daemon) ::_exit(1);
    for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    give_back_limits();
    ::dup2(spec.input, 0);
    ::dup2(spec.output, 1);
    ::dup2(spec.error, 2);
    if (spec.kept >= 0) ::fcntl(spec.kept, F_SETFD, 0);
    if (!spec.processors.empty()) bind_to(spec.processors);
    Failure failure;
    if (::chdir(spec.directory.c_str()) == 0)
        ::execve(words[0], words, environment);
    else
        failure.directory = true;
    failure.code = errno;
    [[maybe_unused]] ssize_t n = ::write(failed, &failure, sizeof failure);
    ::_exit(127);
}

}  // namespace

Child spawn(const SpawnSpec& spec) {
    always(!spec.words.empty(), "a rank without a program");
    std::vector<char*> words = pointers(spec.words), environment = pointers(spec.environment);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail_errno("cannot create a pipe");
    Fd in(ends[0]), out(ends[1]);
    pid_t daemon = ::getpid();
    Child child;
    child.pid = ::fork();
    if (child.pid < 0) fail_errno("cannot start {}", spec.words[0]);
    if (child.pid == 0) become_rank(spec, words.data(), environment.data(), daemon, out.get());
    ::setpgid(child.pid, child.pid);  // here, too: nobody knows who comes first
    child.process = Fd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
    if (!child.process) {
        int code = errno;
        ::kill(child.pid, SIGKILL);
        ::waitpid(child.pid, nullptr, 0);
        errno = code;
        fail_errno("cannot watch {}", spec.words[0]);
    }
    child.starting = std::move(in);
    return child;
}

void confirm(Child& child, const std::string& program, const std::string& directory) {
    always(static_cast<bool>(child.starting), "a rank whose start is confirmed twice");
    Failure failure;
    ssize_t n;
    do n = ::read(child.starting.get(), &failure, sizeof failure);
    while (n < 0 && errno == EINTR);
    child.starting.reset();
    if (n != static_cast<ssize_t>(sizeof failure)) return;
    errno = failure.code;
    fail_errno("cannot {} {}", failure.directory ? "start in" : "run",
               failure.directory ? directory : program);
}

}  // namespace fermata::noded
