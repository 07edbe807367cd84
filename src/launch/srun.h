// Slurm's srun as the launcher: ranks are a step of the job, and Slurm keeps placement, limits and
// accounting.
//
// A rank that dies leaves the others running (-K0, --no-kill): the root decides. A stop is silent when the
// ranks leave by themselves; srun that is signalled kills them at once and writes about each.
#pragma once

#include <string>
#include <vector>

#include "launch/launcher_process.h"

namespace fermata::launch {

// The plugin that this library's ranks find each other by; empty: srun has none of those it could use.
std::string plugin_for(const std::string& mpi, const std::vector<std::string>& plugins);

class Srun : public LauncherProcess {
  public:
    // Throws Error when srun could not start such a job.
    Srun(LaunchPlan plan, std::optional<TerminalInput> input);

    bool ends_when_a_rank_dies() const override { return false; }
    bool ends_with_its_ranks() const override { return true; }
    std::string why_alone() const override;

  protected:
    CommandLine command_line() const override;

  private:
    std::string srun_;
    std::string plugin_;
    std::vector<std::string> given_;  // the user's words
    std::vector<std::string> avoid_;  // nodes on which nothing can be started
    bool crowded_ = false;            // more ranks than processors, as the user has allowed
};

}  // namespace fermata::launch
