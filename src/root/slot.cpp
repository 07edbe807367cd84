#include "root/slot.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <vector>

#include "base/fd.h"
#include "tree/channel.h"

namespace fermata::root {
namespace {

constexpr int64_t kPatienceMs = 3000;

// What a program writes; "" when it fails or takes too long.
std::string output_of(const std::vector<std::string>& words) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return {};
    Fd in(ends[0]), out(ends[1]);
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    pid_t pid = ::fork();
    if (pid < 0) return {};
    if (pid > 0) ::setpgid(pid, pid);  // here, too: nobody knows who comes first
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::setpgid(0, 0);
        // What it complains of is nobody's concern: without an answer there is --walltime.
        int null = ::open("/dev/null", O_RDWR);
        ::dup2(null, 0);
        ::dup2(out.get(), 1);
        ::dup2(null, 2);
        ::execvp(argv[0], argv.data());
        ::_exit(127);
    }
    out.reset();
    std::string text;
    bool whole = false;
    for (int64_t end = tree::now_ms() + kPatienceMs; text.size() < 65536;) {
        pollfd wait{in.get(), POLLIN, 0};
        int left = static_cast<int>(end - tree::now_ms());
        if (left <= 0) break;
        if (::poll(&wait, 1, left) <= 0) continue;
        char buffer[4096];
        ssize_t n = ::read(in.get(), buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            whole = n == 0;
            break;
        }
        text.append(buffer, static_cast<size_t>(n));
    }
    // With what it has started.
    if (!whole) ::kill(-pid, SIGKILL), ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    return whole && status == 0 ? text : "";
}

}  // namespace

std::optional<int64_t> time_of_squeue(const std::string& text) {
    tm parts{};
    const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
    if (!end || (*end != 0 && *end != '\n')) return {};
    parts.tm_isdst = -1;
    time_t time = ::mktime(&parts);
    if (time <= 0) return {};
    return time;
}

std::optional<double> seconds_left_in_slot(bool ask) {
    const char* job = std::getenv("SLURM_JOB_ID");
    if (!job) return {};
    const int64_t now = ::time(nullptr);
    if (const char* said = std::getenv("SLURM_JOB_END_TIME"); said && !ask) {
        const std::string text = said;
        int64_t end = 0;
        auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), end);
        if (error == std::errc{} && at == text.data() + text.size() && end > now)
            return static_cast<double>(end - now);
    }
    // UNLIMITED or N/A is no time.
    auto end = time_of_squeue(output_of({"squeue", "--noheader", "--jobs", job, "--format", "%e"}));
    if (!end || *end <= now) return {};
    return static_cast<double>(*end - now);
}

}  // namespace fermata::root
