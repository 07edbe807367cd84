// libexec/fermata/reach: what a launcher starts in front of a lower half when its MPI library is elsewhere
// (`--mpi PATH`) and perhaps called otherwise.
//
//     reach FOLDER FILE WANTED -- PROGRAM ARGUMENTS…
//
// Makes links to everything in FOLDER, and one to FILE by the name WANTED, in the directory of this node's
// daemon, puts that in front of LD_LIBRARY_PATH and becomes PROGRAM. Each node has links of its own: the run
// directory of the job's first node does not exist on the others.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "tree/agent_link.h"

namespace fs = std::filesystem;

namespace {

using namespace fermata;

// Ranks of a node come at the same time: each makes what is not there, and finds all when it is done.
void make_links(const fs::path& folder, const std::string& file, const std::string& wanted,
                const fs::path& links) {
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
    link(folder / file, wanted);
}

int run(int argc, char** argv) {
    if (argc < 6 || std::string(argv[4]) != "--")
        fail("reach is started by `fermata run --mpi PATH`, not by hand");
    fs::path folder = argv[1];
    if (!fs::exists(folder / argv[2]))
        fail("there is no {} on this node: --mpi takes a path that all nodes have",
             (folder / argv[2]).string());
    tree::AgentConfig config = tree::AgentConfig::from_environment();
    if (config.job_id.empty()) fail("reach is started by `fermata run --mpi PATH`, not by hand");
    tree::AgentLink::ensure_daemon(config);
    fs::path links = config.node_dir() + "/mpi";
    make_links(folder, argv[2], argv[3], links);
    std::string path = links.string();
    if (const char* old = std::getenv("LD_LIBRARY_PATH"); old != nullptr && *old != 0)
        path += std::string(":") + old;
    ::setenv("LD_LIBRARY_PATH", path.c_str(), 1);
    ::setenv("FERMATA_KEY", config.key.c_str(), 1);  // the lower half takes it out again
    config.forget_key();
    ::execv(argv[5], argv + 5);
    fail_errno("cannot execute {}", argv[5]);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        fermata::say(std::string("error: ") + error.what());
        return 1;
    }
}
