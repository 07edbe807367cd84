#include "job/library_at.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"

namespace fs = std::filesystem;

namespace fermata::job {
namespace {

// What the lower half for MPICH asks for (Debian's name), and what such libraries are called elsewhere.
constexpr const char* kWanted = "libmpich.so.12";
constexpr const char* kNames[] = {"libmpi.so.12", kWanted};

const char* library_in(const fs::path& folder) {
    std::error_code ignored;
    for (const char* name : kNames)
        if (fs::exists(folder / name, ignored)) return name;
    return nullptr;
}

}  // namespace

bool names_a_place(const std::string& wanted) { return wanted.find('/') != std::string::npos; }

Launcher launcher_at(const std::string& place, const Places& places) {
    std::error_code error;
    fs::path root = fs::canonical(place, error);
    if (error) throw Error(fmt::format("no MPI library at {}: {}", place, error.message()), ExitCode::usage);
    if (library_in(root / "lib") == nullptr)
        throw Error(
            fmt::format("no library with MPICH's ABI at {}: lib/libmpi.so.12 should be there", root.string()),
            ExitCode::usage);
    Launcher found;
    found.mpi = "mpich";
    found.root = root.string();
    found.mpiexec = (root / "bin" / "mpiexec").string();
    if (::access(found.mpiexec.c_str(), X_OK) != 0)
        throw Error(fmt::format("the MPI library at {} has no launcher: {} cannot be executed", root.string(),
                                found.mpiexec),
                    ExitCode::usage);
    found.lower = places.libexec + "/lower-" + found.mpi;
    if (::access(found.lower.c_str(), X_OK) != 0)
        fail("no lower half for {} in {}", found.mpi, places.libexec);
    return found;
}

std::map<std::string, std::string> reach_library(const Launcher& launcher, const std::string& directory) {
    fs::path root = launcher.root, links = fs::path(directory) / "mpi";
    const char* file = library_in(root / "lib");
    if (file == nullptr) fail("the MPI library at {} has gone", launcher.root);
    // Everything beside it is linked, too: the library may look for its own parts where it was found
    // ($ORIGIN).
    fs::create_directory(links);
    for (const fs::directory_entry& entry : fs::directory_iterator(root / "lib"))
        fs::create_symlink(entry.path(), links / entry.path().filename());
    std::error_code exists;
    fs::create_symlink(root / "lib" / file, links / kWanted, exists);
    std::string path = links.string();
    if (const char* old = std::getenv("LD_LIBRARY_PATH"); old != nullptr && *old != 0)
        path += std::string(":") + old;
    return {{"LD_LIBRARY_PATH", path}};
}

}  // namespace fermata::job
