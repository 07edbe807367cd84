// Which launcher starts a job.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/launcher.h"
#include "launch/plan.h"
#include "launch/terminal_input.h"

namespace fermata::launch {

// Throws Error (exit code 2) for another word.
LauncherName launcher_named(const std::string& word);

// Does this launcher need the library's mpiexec? `automatic`: not where Slurm could start the ranks.
bool needs_mpiexec(LauncherName name);
// Resolves `automatic` for this library and these options of the user's; another name is itself.
LauncherName choose_launcher(LauncherName name, const Library& library,
                             const std::vector<std::string>& words);
// The name of the options (launcher_options.h) that a job started so takes.
std::string options_name(LauncherName name, const Library& library);

// Throws Error when this launcher cannot start such a job here. `name`: chosen.
std::unique_ptr<Launcher> make_launcher(LauncherName name, LaunchPlan plan,
                                        std::optional<TerminalInput> input);

}  // namespace fermata::launch
