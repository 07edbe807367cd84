#include "lower/starter.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/environment.h"
#include "base/error.h"
#include "base/fd.h"
#include "split/loader/starters.h"
#include "tree/input.h"

extern char** environ;

namespace fermata::lower {
namespace {

constexpr const char* kName = "libfermata-starter.so";

pid_t parent_of(pid_t pid) {
    try {
        std::string stat = read_file(fmt::format("/proc/{}/stat", pid));
        // "123 (a name) S 45 …"
        size_t name_end = stat.rfind(')');
        return name_end == std::string::npos ? 0 : std::stoi(stat.substr(name_end + 4));
    } catch (const std::exception&) {
        return 0;
    }
}

std::string value(const char* name) {
    const char* found = std::getenv(name);
    return found ? found : "";
}

void set(const char* name, const std::string& text) { ::setenv(name, text.c_str(), 1); }

// LD_PRELOAD's words end at blanks and colons: a library below such a path gets a name beside the daemon.
std::string preloadable(const std::string& directory, const tree::AgentConfig& config) {
    std::string library = directory + "/" + kName;
    if (library.find_first_of(" :") == std::string::npos) return library;
    std::string link = config.node_dir() + "/" + kName;
    if (::symlink(library.c_str(), link.c_str()) != 0 && errno != EEXIST) fail_errno("cannot make {}", link);
    if (link.find_first_of(" :") != std::string::npos)
        fail(
            "{} and {} have blanks or colons in their names: the loader cannot preload a library from there; "
            "start the MPI program directly",
            directory, config.node_dir());
    return link;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> list;
    for (std::string& word : words) list.push_back(word.data());
    list.push_back(nullptr);
    return list;
}

}  // namespace

void run_starter(const StarterStart& start, const tree::AgentConfig& config) {
    tree::AgentLink::ensure_daemon(config);
    const int rank = tree::AgentLink::launcher_rank();
    {
        tree::AgentLink link(config);
        link.send(wire::InStarter{rank, ::getpid(), start.program, ""});
    }
    if (rank == 0 && !config.input.empty()) {
        auto input = tree::InputFile::decoded(config.input);
        if (!input) fail("FERMATA_INPUT is damaged: {}", config.input);
        input->become_standard_input();
    }
    ::unsetenv("FERMATA_INPUT");  // the starter decides what the program reads
    std::string library = preloadable(start.directory, config);
    set(split::kStarterVariable, start.program);
    set(split::kStarterProcess, std::to_string(::getpid()));
    set(split::kLauncherProcess, std::to_string(::getppid()));
    set(split::kStarterLibrary, library);
    set(split::kStarterLower, start.lower);
    set(split::kStarterDirectory, config.node_dir());
    set(split::kLibraryPath, value("LD_LIBRARY_PATH"));
    std::string preload = value("LD_PRELOAD");
    set("LD_PRELOAD", preload.empty() ? library : library + ":" + preload);

    std::vector<std::string> words{start.program};
    words.insert(words.end(), start.arguments.begin(), start.arguments.end());
    ::execv(start.check.program.c_str(), pointers(words).data());
    if (errno == ENOEXEC && !start.check.prefix.empty()) {  // a script without #!
        words = start.check.prefix;
        words.insert(words.end(), start.arguments.begin(), start.arguments.end());
        ::execv(words[0].c_str(), pointers(words).data());
    }
    fail_errno("cannot execute {}", start.check.program);
}

void tell_starter_of_end() {
    if (!comes_from_starter()) return;
    std::string path = value(split::kStarterDirectory) + "/" + split::kLeaving;
    Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

void end_starter() {
    if (!comes_from_starter()) return;
    {
        std::string path = value(split::kStarterDirectory) + "/" + split::kLeaving;
        Fd mark(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        [[maybe_unused]] ssize_t n = ::write(mark.get(), split::kQuietly, 1);
    }
    const pid_t launcher = number_from({split::kLauncherProcess}, 1);
    // From the outermost one on, so that none goes on behind the one that it waits for.
    std::vector<pid_t> above;
    for (pid_t pid = ::getppid(); pid > 1 && pid != launcher && above.size() < 64; pid = parent_of(pid))
        above.push_back(pid);
    for (auto pid = above.rbegin(); pid != above.rend(); ++pid) ::kill(*pid, SIGTERM);
    for (pid_t pid : above)
        for (int i = 0; i < 100 && ::kill(pid, 0) == 0; ++i) ::usleep(5000);
}

const char* guard_library(char* path, size_t size) {
    ssize_t n = ::readlink("/proc/self/exe", path, size - std::strlen(kName) - 2);
    if (n <= 0) return nullptr;
    path[n] = 0;
    char* slash = std::strrchr(path, '/');
    if (slash == nullptr) return nullptr;
    std::strcpy(slash + 1, kName);
    return std::strpbrk(path, " :") == nullptr && ::access(path, R_OK) == 0 ? path : nullptr;
}

bool comes_from_starter() { return std::getenv(split::kStarterVariable) != nullptr; }

std::string take_over_from_starter(const std::string& program, const tree::AgentConfig& config) {
    std::string path = value(split::kLibraryPath);
    if (path.empty())
        ::unsetenv("LD_LIBRARY_PATH");
    else
        set("LD_LIBRARY_PATH", path);
    int rank = tree::AgentLink::launcher_rank();
    std::string claim = fmt::format("{}/program-{}", config.node_dir(), rank);
    Fd file(::open(claim.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file) {
        [[maybe_unused]] ssize_t n = ::write(file.get(), program.data(), program.size());
        return "";
    }
    if (errno != EEXIST) return fmt::format("cannot write {}: {}", claim, std::strerror(errno));
    std::string first = read_file(claim);
    return fmt::format(
        "rank {}: {} is the second MPI program that {} starts, after {}: a rank runs one; give each a "
        "`fermata run` "
        "of its own",
        rank, program, value(split::kStarterVariable), first);
}

}  // namespace fermata::lower
