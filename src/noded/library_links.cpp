#include "noded/library_links.h"

#include <filesystem>
#include <functional>

#include "base/error.h"

namespace fs = std::filesystem;

namespace fermata::noded {

std::string link_library(const wire::LibraryPlace& library, const std::string& directory) {
    const fs::path folder = library.folder;
    if (!fs::exists(folder / library.file))
        fail("there is no {} on this node: --mpi takes a path that all nodes have",
             (folder / library.file).string());
    const fs::path links = fmt::format("{}/mpi-{:016x}", directory, std::hash<std::string>{}(library.folder));
    // Ranks of a node come at the same time: each makes what is not there, and finds all when it is done.
    std::error_code exists;
    fs::create_directory(links, exists);
    auto link = [&](const fs::path& to, const fs::path& name) {
        fs::create_symlink(to, links / name, exists);
        if (exists && exists != std::errc::file_exists)
            fail("cannot make {}: {}", (links / name).string(), exists.message());
    };
    // Everything beside the library is linked, too: it may look for its own parts where it was found
    // ($ORIGIN).
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
        link(entry.path(), entry.path().filename());
    link(folder / library.file, library.wanted);
    return links.string();
}

std::string in_front(const std::string& folder, const std::string& before) {
    return before.empty() ? folder : folder + ":" + before;
}

}  // namespace fermata::noded
