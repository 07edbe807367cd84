// libexec/fermata/reach: what a launcher starts in front of a lower half when its MPI library is elsewhere
// (`--mpi PATH`) and perhaps called otherwise.
//
//     reach FOLDER FILE WANTED -- PROGRAM ARGUMENTS…
//
// Makes links (library_links.h) in the directory of this node's daemon, puts that in front of LD_LIBRARY_PATH
// and becomes PROGRAM.
#include <unistd.h>

#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "noded/library_links.h"
#include "tree/agent_link.h"

namespace {

using namespace fermata;

int run(int argc, char** argv) {
    if (argc < 6 || std::string(argv[4]) != "--")
        fail("reach is started by `fermata run --mpi PATH`, not by hand");
    tree::AgentConfig config = tree::AgentConfig::from_environment();
    if (config.job_id.empty()) fail("reach is started by `fermata run --mpi PATH`, not by hand");
    tree::AgentLink::ensure_daemon(config);
    const char* const before = std::getenv("LD_LIBRARY_PATH");
    const std::string path = noded::in_front(
        noded::link_library({argv[1], argv[2], argv[3]}, config.node_dir()), before ? before : "");
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
