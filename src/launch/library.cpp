#include "launch/library.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/fd.h"
#include "base/process_limits.h"
#include "launch/library_at.h"

namespace fs = std::filesystem;

namespace fermata::launch {
namespace {

const std::vector<LauncherKind>& kinds() {
    static const std::vector<LauncherKind> all = {
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

std::string find_mpiexec(const LauncherKind& kind) {
    for (const char* name : kind.names) {
        std::string found = in_path(name);
        if (found.empty()) continue;
        if (std::string(name) != "mpiexec" || has_word(output_of(found, "--version"), kind.version_word))
            return found;
    }
    return {};
}

}  // namespace

const LauncherKind& kind_of(const std::string& mpi) {
    for (const LauncherKind& kind : kinds())
        if (mpi == kind.mpi) return kind;
    fail("no MPI library is called {}", mpi);
}

Places find_places() {
    std::error_code error;
    fs::path self = fs::read_symlink("/proc/self/exe", error);
    fs::path prefix = self.parent_path().parent_path();
    Places places{(prefix / "libexec/fermata").string(), (prefix / "lib/fermata/fronts").string()};
    if (const char* given = std::getenv("FERMATA_LIBEXEC"); given && *given)
        places.libexec = fs::absolute(given);
    return places;
}

std::vector<Library> all_libraries(const Places& places) {
    std::vector<Library> all;
    for (const LauncherKind& kind : kinds()) {
        Library library;
        library.mpi = kind.mpi;
        std::string lower = places.libexec + "/lower-" + kind.mpi;
        if (::access(lower.c_str(), X_OK) == 0) library.lower = lower;
        library.mpiexec = find_mpiexec(kind);
        all.push_back(library);
    }
    return all;
}

Library choose_library(const std::string& wanted, const std::string& preferred, const Places& places) {
    if (names_a_place(wanted)) return library_at(wanted, places);
    std::vector<Library> all = all_libraries(places);
    auto named = [&](const std::string& mpi) {
        return std::find_if(all.begin(), all.end(), [&](const Library& l) { return l.mpi == mpi; });
    };
    std::string mpi = wanted == "auto" ? preferred : wanted;
    if (mpi.empty()) {
        auto any = std::find_if(all.begin(), all.end(), [](const Library& l) { return l.usable(); });
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
    auto other = std::find_if(all.begin(), all.end(), [](const Library& l) { return l.usable(); });
    if (wanted == "auto" && other != all.end()) return *other;
    if (found->lower.empty())
        fail("no lower half for {} in {}: was Fermata built where this library is installed?", mpi,
             places.libexec);
    fail("no mpiexec of {} in PATH ({}): install it, or load its module", mpi,
         fmt::join(kind_of(mpi).names, ", "));
}

std::string version_of(const Library& library) {
    if (library.mpiexec.empty()) return {};
    std::string text = output_of(library.mpiexec, "--version");
    // Hydra's first line says nothing; its version stands in one of its own.
    auto at = text.find("Version:");
    if (at != std::string::npos) {
        auto from = text.find_first_not_of(" \t", at + 8);
        return "MPICH " + text.substr(from, text.find('\n', from) - from);
    }
    return text.substr(0, text.find('\n'));
}

}  // namespace fermata::launch
