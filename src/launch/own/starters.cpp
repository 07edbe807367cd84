#include "launch/own/starters.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "base/naps.h"
#include "base/process_limits.h"
#include "base/text.h"
#include "launch/own/usable.h"
#include "launch/rank_environment.h"

extern char** environ;

namespace fermata::launch::own {
namespace {

constexpr int64_t kLeaveMs = 3000;  // daemons that the root has sent away

std::vector<char*> pointers(const std::vector<std::string>& words) {
    std::vector<char*> list;
    for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
    list.push_back(nullptr);
    return list;
}

// This process's environment, as noded --environment reads it.
void write_environment(int file) {
    for (char** one = environ; one && *one; ++one) {
        size_t size = std::strlen(*one) + 1;
        if (::write(file, *one, size) != static_cast<ssize_t>(size)) ::_exit(1);
    }
    ::lseek(file, 0, SEEK_SET);
}

std::string noded(const LaunchPlan& plan) { return plan.environment.at("FERMATA_NODED"); }

std::string command_for(const LaunchPlan& plan) {
    return fmt::format("exec {} --environment", shell_quoted(noded(plan)));
}

}  // namespace

Starters::~Starters() {
    Naps naps(100);
    for (int64_t end = monotonic_ms() + kLeaveMs; !starters_.empty(); ::usleep(naps.next_us())) {
        std::erase_if(starters_,
                      [](const Starter& one) { return ::waitpid(one.pid, nullptr, WNOHANG) != 0; });
        if (monotonic_ms() < end) continue;
        for (const Starter& one : starters_) ::kill(one.pid, SIGKILL);
    }
}

void Starters::start(Starter starter, const std::vector<std::string>& words, const std::string& daemon,
                     int input, const std::function<void()>& prepare) {
    std::vector<char*> list = pointers(words);
    Fd null = open_file("/dev/null", O_RDWR | O_CLOEXEC);
    starter.pid = ::fork();
    if (starter.pid < 0) fail_errno("cannot start {}", words[0]);
    if (starter.pid == 0) {
        ::setsid();  // what a terminal sends to Fermata's group reaches Fermata alone
        sigset_t none;
        sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::signal(SIGPIPE, SIG_DFL);
        give_back_limits();
        set_rank_environment(plan_);
        ::setenv("FERMATA_DAEMON", daemon.c_str(), 1);
        prepare();
        // Whatever Fermata was started with besides is not for ranks.
        ::syscall(SYS_close_range, 3u, ~0u, 1u << 2);  // CLOSE_RANGE_CLOEXEC
        ::dup2(input >= 0 ? input : null.get(), 0);
        ::dup2(null.get(), 1);
        ::execvp(list[0], list.data());
        dprintf(2, "fermata: error: cannot run %s: %s\n", list[0], std::strerror(errno));
        ::_exit(127);
    }
    starters_.push_back(std::move(starter));
}

void Starters::here(uint32_t node) {
    start({-1, "the node daemon", noded(plan_), false}, {noded(plan_)}, std::to_string(node), -1, [] {});
}

void Starters::by_ssh(uint32_t node, const std::string& host) {
    std::vector<std::string> words = ssh_words();
    words.push_back(host);
    words.push_back(command_for(plan_));
    // A file without a name: it holds the key, and nobody else can open it.
    Fd file(::memfd_create("environment", MFD_CLOEXEC));
    if (!file) fail_errno("cannot hand the environment to {}", host);
    start({-1, "the node daemon on " + host, words[0] + " " + host, true}, words, std::to_string(node),
          file.get(), [&] { write_environment(file.get()); });
}

wire::StartDaemons Starters::order(std::vector<wire::HostToStart> hosts) const {
    return {ssh_words(), command_for(plan_), std::move(hosts)};
}

void Starters::by_srun(uint32_t nodes, const std::vector<std::string>& names) {
    const std::string number = std::to_string(nodes);
    std::vector<std::string> words = {"srun",      "--overlap",           "-N",        number, "-n",
                                      number,      "--ntasks-per-node=1", "--no-kill", "-K0",  "--input=none",
                                      "--mpi=none"};
    if (!names.empty()) words.push_back(fmt::format("--nodelist={}", fmt::join(names, ",")));
    words.push_back(noded(plan_));
    start({-1, "the node daemons", "srun", false}, words, "task", -1, [] {});
}

std::optional<std::string> Starters::failure() {
    std::optional<std::string> line;
    std::erase_if(starters_, [&](const Starter& one) {
        int status = 0;
        if (::waitpid(one.pid, &status, WNOHANG) != one.pid) return false;
        bool well = one.returns && WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (!well && !line)
            line = fmt::format("{} has ended ({}: {})", one.what, one.words, text_of_end(status));
        return true;
    });
    return line;
}

}  // namespace fermata::launch::own
