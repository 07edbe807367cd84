// A Plan says what is to be started: programs, ranks, and what every rank is told. All launchers take the
// same plan.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/library.h"

namespace fermata::launch {

// "auto", "mpiexec", "srun" or "own", as people say it. `automatic`: the place decides.
enum class LauncherName { automatic, mpiexec, srun, own };

// Ranks that run one program: what stands between two ":" of the launcher's command line.
struct Part {
    int ranks = 0;  // 0 = the launcher's default
    std::string mpiexec_args;
    std::vector<std::string> program;  // with arguments; empty at a restart
    std::string program_path;          // where its first word was found; "" = ranks look for themselves
};
inline int ranks_of(const std::vector<Part>& parts) {
    int ranks = 0;
    for (const Part& part : parts) ranks += part.ranks;
    return ranks;
}
// The first part, and what is said once.
struct LaunchPlan : Part {
    Library library;
    LauncherName launcher = LauncherName::mpiexec;
    std::vector<Part> more;  // behind a ":" each
    int all_ranks() const { return ranks + ranks_of(more); }
    std::map<std::string, std::string> environment;  // FERMATA_…, for every rank
    bool no_input = false;  // the launcher has none to hand on: rank 0 opens it itself
    // Another life of this job, in the same allocation: what the earlier one left may still be there.
    bool again = false;
    // When ranks are lost the job is started again from a generation: nothing counts that the others do then.
    bool may_restart = false;
    std::vector<std::string> suspects;  // nodes that were lost, by host name
    unsigned spares = 0;                // nodes that are not used as long as enough others live
};

}  // namespace fermata::launch
