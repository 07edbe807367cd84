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

struct Found {
    const Known* known = nullptr;  // null: none of them
    fs::path folder;
};

Found library_below(const fs::path& root) {
    std::error_code ignored;
    for (const char* folder : {"lib", "lib64"})
        for (const Known& known : kKnown)
            if (fs::exists(root / folder / known.file, ignored)) return {&known, root / folder};
    return {};
}

bool has_launcher(const fs::path& root) { return ::access((root / "bin" / "mpiexec").c_str(), X_OK) == 0; }

}  // namespace

bool names_a_place(const std::string& wanted) { return wanted.find('/') != std::string::npos; }

Library library_at(const std::string& place, const Places& places) {
    std::error_code error;
    fs::path root = fs::canonical(place, error);
    if (error) throw Error(fmt::format("no MPI library at {}: {}", place, error.message()), ExitCode::usage);
    const Known* known = library_below(root).known;
    if (known == nullptr)
        throw Error(
            fmt::format("no MPI library at {}: lib/libmpi.so.12 (MPICH's ABI) or lib/libmpi.so.40 (Open "
                        "MPI's) should be there, or in lib64",
                        root.string()),
            ExitCode::usage);
    Library found;
    found.mpi = known->mpi;
    found.root = root.string();
    if (has_launcher(root)) found.mpiexec = (root / "bin" / "mpiexec").string();
    found.lower = places.libexec + "/lower-" + found.mpi;
    if (::access(found.lower.c_str(), X_OK) != 0)
        fail("no lower half for {} in {}", found.mpi, places.libexec);
    return found;
}

std::string kept_for_modules(const std::string& mpi) {
    for (const char* parent : {"/usr/lib64", "/usr/lib64/mpi/gcc"})
        for (const char* version : {"", "5", "4"}) {
            const fs::path root = fs::path(parent) / (mpi + version);
            const Found found = library_below(root);
            if (found.known != nullptr && found.known->mpi == mpi && has_launcher(root)) return root.string();
        }
    return {};
}

wire::LibraryPlace place_of(const Library& library) {
    const Found found = library_below(library.root);
    if (found.known == nullptr) fail("the MPI library at {} has gone", library.root);
    return {found.folder.string(), found.known->file, found.known->wanted};
}

std::vector<std::string> words_to_reach(const Library& library) {
    if (library.root.empty()) return {};
    const wire::LibraryPlace place = place_of(library);
    return {fs::path(library.lower).replace_filename("reach").string(), place.folder, place.file,
            place.wanted, "--"};
}

}  // namespace fermata::launch
