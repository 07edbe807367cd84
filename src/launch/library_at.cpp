#include "launch/library_at.h"

#include <unistd.h>

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

wire::LibraryPlace place_of(const Library& library) {
    const fs::path folder = fs::path(library.root) / "lib";
    const Known* known = library_in(folder);
    if (known == nullptr) fail("the MPI library at {} has gone", library.root);
    return {folder.string(), known->file, known->wanted};
}

std::vector<std::string> words_to_reach(const Library& library) {
    if (library.root.empty()) return {};
    const wire::LibraryPlace place = place_of(library);
    return {fs::path(library.lower).replace_filename("reach").string(), place.folder, place.file,
            place.wanted, "--"};
}

}  // namespace fermata::launch
