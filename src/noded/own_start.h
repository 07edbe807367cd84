// OwnStart is how the launcher `own` has started this node daemon.
//
//     FERMATA_DAEMON=N noded         by the root, on its own machine: stays in the foreground
//     FERMATA_DAEMON=task noded      by srun, one per node: likewise; its number is the task's
//     noded --environment < FILE     by ssh: the environment, with FERMATA_DAEMON=N, comes by standard input;
//                                    returns when the daemon runs
#pragma once

#include <cstdint>
#include <optional>

namespace fermata::noded {

struct OwnStart {
    std::optional<uint32_t> number;  // in the launcher's list; none: ranks have started this daemon
    bool stays = false;              // in the foreground

    // Takes the environment over where it comes by standard input. Throws Error.
    static OwnStart of(int argc, char** argv);
};

}  // namespace fermata::noded
