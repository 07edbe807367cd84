#include "launch/programs.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/fd.h"
#include "base/process_limits.h"

namespace fs = std::filesystem;

namespace fermata::launch {

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

std::string output_of(const std::string& program, const std::vector<std::string>& arguments) {
    std::vector<char*> argv = {const_cast<char*>(program.c_str())};
    for (const std::string& word : arguments) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
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
        ::execv(program.c_str(), argv.data());
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
