#include "launch/library.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "launch/library_at.h"
#include "launch/programs.h"

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
        if (std::string(name) != "mpiexec" || has_word(output_of(found, {"--version"}), kind.version_word))
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

void need_mpiexec(const Library& library) {
    if (!library.mpiexec.empty()) return;
    if (!library.root.empty())
        throw Error(fmt::format("the MPI library at {} has no launcher: there is no bin/mpiexec to execute",
                                library.root),
                    ExitCode::usage);
    const std::string kept = kept_for_modules(library.mpi);
    fail("no mpiexec of {} in PATH ({}): {}", library.mpi, fmt::join(kind_of(library.mpi).names, ", "),
         kept.empty() ? "install it, or load its module"
                      : fmt::format("load its module, or --mpi {}, where there is one", kept));
}

Library choose_library(const std::string& wanted, const std::string& preferred, const Places& places,
                       bool launched) {
    auto usable = [launched](const Library& library) { return library.usable(launched); };
    if (names_a_place(wanted)) {
        Library found = library_at(wanted, places);
        if (launched) need_mpiexec(found);
        return found;
    }
    std::vector<Library> all = all_libraries(places);
    auto named = [&](const std::string& mpi) {
        return std::find_if(all.begin(), all.end(), [&](const Library& l) { return l.mpi == mpi; });
    };
    std::string mpi = wanted == "auto" ? preferred : wanted;
    if (mpi.empty()) {
        auto any = std::find_if(all.begin(), all.end(), usable);
        if (any != all.end()) return *any;
        mpi = all.front().mpi;
    }
    auto found = named(mpi);
    if (found == all.end())
        throw Error(
            fmt::format("no MPI library is called {}: --mpi takes openmpi, mpich, auto or the path of one",
                        mpi),
            ExitCode::usage);
    if (usable(*found)) return *found;
    // Any library will do unless the user asked for this one.
    auto other = std::find_if(all.begin(), all.end(), usable);
    if (wanted == "auto" && other != all.end()) return *other;
    if (found->lower.empty())
        fail("no lower half for {} in {}: was Fermata built where this library is installed?", mpi,
             places.libexec);
    need_mpiexec(*found);
    return *found;
}

bool says_its_version(const Library& library) {
    constexpr int64_t kPatienceMs = 10000;
    return ask(library.mpiexec, {"--version"}, kPatienceMs, Errors::silent).well;
}

std::string version_of(const Library& library) {
    if (library.mpiexec.empty()) return {};
    std::string text = output_of(library.mpiexec, {"--version"});
    // Hydra's first line says nothing; its version stands in one of its own.
    auto at = text.find("Version:");
    if (at != std::string::npos) {
        auto from = text.find_first_not_of(" \t", at + 8);
        return "MPICH " + text.substr(from, text.find('\n', from) - from);
    }
    return text.substr(0, text.find('\n'));
}

bool hides_lost_nodes(const std::string& version) {
    constexpr std::string_view kName = "Open MPI v";
    return version.starts_with(kName) && std::atoi(version.c_str() + kName.size()) >= 5;
}

}  // namespace fermata::launch
