// The site's own mpiexec as the launcher. It has a process group of its own, and gets SIGTERM when Fermata's
// process dies.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "launch/launcher.h"
#include "launch/plan.h"
#include "launch/terminal_input.h"

namespace fermata::launch {

// The launcher's command line.
std::vector<std::string> command_of(const LaunchPlan& plan);

class Mpiexec : public Launcher {
  public:
    // `input`: a terminal that Fermata reads for it; none: it has this process's standard input.
    explicit Mpiexec(LaunchPlan plan, std::optional<TerminalInput> input = {})
        : plan_(std::move(plan)), input_(std::move(input)) {}

    void start() override;
    std::optional<int> ended() override;
    void ask_to_end() override;
    void kill() override;
    void hand_on(int signal, bool to_all) override;
    void add_to(std::vector<pollfd>& fds) override;
    void serve(const std::vector<pollfd>& fds, size_t first) override;

  private:
    const LaunchPlan plan_;
    std::optional<TerminalInput> input_;
    pid_t pid_ = -1;  // and its process group
    std::optional<int> end_;
};

}  // namespace fermata::launch
