// A launcher that is a process of its own: the site's mpiexec, Slurm's srun. It has a process group of its
// own, and gets SIGTERM when Fermata's process dies.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launch/launcher.h"
#include "launch/plan.h"
#include "launch/session_directory.h"
#include "launch/terminal_input.h"

namespace fermata::launch {

struct CommandLine {
    std::string file;                // absolute path
    std::vector<std::string> words;  // with argv[0]
    std::vector<std::string> unset;  // variables that it does not get
    std::string libraries;           // a folder that it does not find by itself; "" = none
};

class LauncherProcess : public Launcher {
  public:
    // `input`: a terminal that Fermata reads for it; none: it has this process's standard input.
    LauncherProcess(LaunchPlan plan, std::optional<TerminalInput> input)
        : plan_(std::move(plan)), input_(std::move(input)) {}

    void start() override;
    std::optional<int> ended() override;
    void ask_to_end() override;
    void kill() override;
    void hand_on(int signal, bool to_all) override;
    void add_to(std::vector<pollfd>& fds) override;
    void serve(const std::vector<pollfd>& fds, size_t first) override;

  protected:
    const LaunchPlan& plan() const { return plan_; }
    virtual CommandLine command_line() const = 0;

  private:
    int try_to_start(const CommandLine& command, char* const* argv, const std::set<pid_t>& taken);

    const LaunchPlan plan_;
    std::optional<TerminalInput> input_;
    HeldSessionDirectory shared_directory_;
    pid_t pid_ = -1;  // and its process group
    std::optional<int> end_;
};

// How a rank of this part is started: the lower half, and what it is told of the program.
std::vector<std::string> rank_command(const Part& part, const LaunchPlan& plan);

}  // namespace fermata::launch
