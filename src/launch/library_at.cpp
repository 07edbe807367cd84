#include "launch/library_at.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"

namespace fs = std::filesystem;

namespace fermata::launch {
namespace {

// A library file, whose lower half it is for, and by what name that one asks for it (Debian's).
struct Known {
    const char* file;
    const char* mpi;
    const char* wanted;
};
constexpr Known kKnown[] = {{"libmpi.so.12", "mpich", "libmpich.so.12"},
                            {"libmpich.so.12", "mpich", "libmpich.so.12"},
                            {"libmpi.so.40", "openmpi", "libmpi.so.40"}};

const Known* library_in(const fs::path& folder) {
    std::error_code ignored;
    for (const Known& known : kKnown)
        if (fs::exists(folder / known.file, ignored)) return &known;
    return nullptr;
}

}  // namespace

bool names_a_place(const std::string& wanted) { return wanted.find('/') != std::string::npos; }

Library library_at(const std::string& place, const Places& places) {
    std::error_code error;
    fs::path root = fs::canonical(place, error);
    if (error) throw Error(fmt::format("no MPI library at {}: {}", place, error.message()), ExitCode::usage);
    const Known* known = library_in(root / "lib");
    if (known == nullptr)
        throw Error(
            fmt::format("no MPI library at {}: lib/libmpi.so.12 (MPICH's ABI) or lib/libmpi.so.40 (Open "
                        "MPI's) should be there",
                        root.string()),
            ExitCode::usage);
    Library found;
    found.mpi = known->mpi;
    found.root = root.string();
    found.mpiexec = (root / "bin" / "mpiexec").string();
    if (::access(found.mpiexec.c_str(), X_OK) != 0) found.mpiexec.clear();
    found.lower = places.libexec + "/lower-" + found.mpi;
    if (::access(found.lower.c_str(), X_OK) != 0)
        fail("no lower half for {} in {}", found.mpi, places.libexec);
    return found;
}

std::map<std::string, std::string> reach_library(const Library& library, const std::string& directory) {
    fs::path root = library.root, links = fs::path(directory) / "mpi";
    const Known* known = library_in(root / "lib");
    if (known == nullptr) fail("the MPI library at {} has gone", library.root);
    // Everything beside it is linked, too: the library may look for its own parts where it was found
    // ($ORIGIN).
    fs::create_directory(links);
    for (const fs::directory_entry& entry : fs::directory_iterator(root / "lib"))
        fs::create_symlink(entry.path(), links / entry.path().filename());
    std::error_code exists;
    fs::create_symlink(root / "lib" / known->file, links / known->wanted, exists);
    std::string path = links.string();
    if (const char* old = std::getenv("LD_LIBRARY_PATH"); old != nullptr && *old != 0)
        path += std::string(":") + old;
    return {{"LD_LIBRARY_PATH", path}};
}

}  // namespace fermata::launch
