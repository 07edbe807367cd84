// Words of mpiexec that the launcher `own` understands: those of Open MPI's and of Hydra's that people give
// most. Any other is refused: a job that runs elsewhere or otherwise than it was told is worse than none.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fermata::launch::own {

enum class Bind { by_default, core, none };

struct Words {
    std::string hosts, hostfile;           // "" = not said
    std::string directory;                 // "" = where `fermata run` was started
    std::vector<std::string> environment;  // NAME=VALUE, for the ranks of this program
    std::vector<std::string> for_all;      // -genv: NAME=VALUE, for every rank
    Bind bind = Bind::by_default;
    std::optional<bool> by_node;  // --map-by
    unsigned per_node = 0;
    bool oversubscribe = false;
    bool operator==(const Words&) const = default;
};

// `words` as a shell splits them. Throws Error (exit code 2) for the first that is not understood.
Words understand(const std::vector<std::string>& words);

}  // namespace fermata::launch::own
