#include "launch/programs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/clock.h"
#include "base/fd.h"
#include "base/process_limits.h"

namespace fs = std::filesystem;

namespace fermata::launch {
namespace {

constexpr int64_t kPatienceMs = 10'000;  // with a launcher that is asked for its version
constexpr size_t kMostAnswer = 65536;

}  // namespace

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

Answer ask(const std::string& program, const std::vector<std::string>& arguments, int64_t patience_ms,
           Errors errors) {
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (const std::string& word : arguments) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    int ends[2];
    if (program.empty() || ::pipe2(ends, O_CLOEXEC) != 0) return {};
    Fd in(ends[0]), out(ends[1]);
    pid_t pid = ::fork();
    if (pid < 0) return {};
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::setpgid(0, 0);
        int null = ::open("/dev/null", O_RDWR);
        ::dup2(null, 0);
        ::dup2(out.get(), 1);
        ::dup2(errors == Errors::too ? out.get() : null, 2);
        give_back_limits();
        ::execv(program.c_str(), argv.data());
        ::_exit(127);
    }
    ::setpgid(pid, pid);  // here, too: nobody knows who comes first
    out.reset();
    Answer answer;
    bool whole = false;
    for (int64_t end = monotonic_ms() + patience_ms; !whole;) {
        pollfd wait{in.get(), POLLIN, 0};
        const int64_t left = end - monotonic_ms();
        if (left <= 0) break;
        if (::poll(&wait, 1, static_cast<int>(left)) <= 0) continue;
        char buffer[4096];
        ssize_t n = ::read(in.get(), buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        whole = n == 0;
        if (answer.text.size() < kMostAnswer) answer.text.append(buffer, static_cast<size_t>(n));
    }
    // With what it has started.
    if (!whole) ::kill(-pid, SIGKILL), ::kill(pid, SIGKILL);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    answer.well = whole && status == 0;
    return answer;
}

std::string output_of(const std::string& program, const std::vector<std::string>& arguments) {
    return ask(program, arguments, kPatienceMs, Errors::too).text;
}

pid_t start_silently(const std::vector<std::string>& words, unsigned seconds) {
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    pid_t pid = ::fork();
    if (pid != 0) return pid;
    int null = ::open("/dev/null", O_RDWR);
    for (int fd : {0, 1, 2}) ::dup2(null, fd);
    give_back_limits();
    ::alarm(seconds);  // survives exec
    ::execv(argv[0], argv.data());
    ::_exit(127);
}

bool ended_well(pid_t pid) {
    int status = 1;
    pid_t ended;
    do ended = pid > 0 ? ::waitpid(pid, &status, 0) : -1;
    while (ended < 0 && pid > 0 && errno == EINTR);
    return ended == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace fermata::launch
