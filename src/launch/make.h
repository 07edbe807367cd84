// Which launcher starts a job.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "launch/launcher.h"
#include "launch/plan.h"
#include "launch/terminal_input.h"

namespace fermata::launch {

// "auto", "mpiexec", "srun" or "own", as people say it. `automatic`: the place decides.
enum class LauncherName { automatic, mpiexec, srun, own };

// Throws Error (exit code 2) for another word.
LauncherName launcher_named(const std::string& word);

// Throws Error when this launcher cannot start such a job here.
std::unique_ptr<Launcher> make_launcher(LauncherName name, LaunchPlan plan,
                                        std::optional<TerminalInput> input);

}  // namespace fermata::launch
