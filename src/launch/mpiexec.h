// The site's own mpiexec as the launcher. It has a process group of its own, and gets SIGTERM when Fermata's
// process dies.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/launcher.h"
#include "launch/library.h"
#include "launch/terminal_input.h"

namespace fermata::launch {

// Ranks that run one program: what stands between two ":" of the launcher's command line.
struct Part {
    int ranks = 0;  // 0 = the launcher's default
    std::string mpiexec_args;
    std::vector<std::string> program;  // with arguments; empty at a restart
    std::string program_path;          // where its first word was found; "" = ranks look for themselves
};
// The first part, and what is said once.
struct LaunchPlan : Part {
    Library library;
    std::vector<Part> more;                          // behind a ":" each
    std::map<std::string, std::string> environment;  // FERMATA_…, for every rank
    bool no_input = false;  // the launcher has none to hand on: rank 0 opens it itself
};
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
