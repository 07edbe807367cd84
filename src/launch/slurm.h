// Slurm as Fermata finds it around itself: an allocation with nodes and processors, and srun with its
// plugins.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace fermata::launch {

// Is this process part of a job of Slurm's?
bool in_allocation();
// The option --fermata of Slurm's commands (src/spank) that this process may have inherited is for the user's
// own srun, not for those that Fermata starts: from here on they have none.
void forget_option_of_plugin();
// The plugins that `srun --mpi=list` names.
std::vector<std::string> mpi_plugins(const std::string& srun);
// Finds the plugins in the text that srun prints.
std::vector<std::string> plugins_in(const std::string& text);

// Processors per node, "2(x2),4" (SLURM_JOB_CPUS_PER_NODE): 2, 2, 4. Empty when the text is none.
std::vector<unsigned> processors_in(const std::string& text);
// Host names of "a[1-3,07],b" (SLURM_JOB_NODELIST), in order. Empty when the text is none.
std::vector<std::string> hosts_in(const std::string& text);

// Nodes of the allocation that are left without those of `avoid`, and how many processors each has; empty
// when Slurm's variables do not say.
std::map<std::string, unsigned> nodes_left(const std::vector<std::string>& avoid);
// The last `spares` nodes of the allocation, one less for each of `avoid`. Throws Error (exit code 2) when no
// other would be left, or Slurm does not name them.
std::vector<std::string> spare_nodes(const std::vector<std::string>& avoid, unsigned spares);
// Which of these nodes of the allocation start no step any more.
std::vector<std::string> silent_nodes(const std::string& srun, const std::vector<std::string>& suspects);

}  // namespace fermata::launch
