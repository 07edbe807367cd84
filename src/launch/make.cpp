#include "launch/make.h"

#include <utility>

#include "base/error.h"
#include "launch/mpiexec.h"

namespace fermata::launch {

LauncherName launcher_named(const std::string& word) {
    constexpr std::pair<const char*, LauncherName> kNames[] = {{"auto", LauncherName::automatic},
                                                               {"mpiexec", LauncherName::mpiexec}};
    for (auto& [name, means] : kNames)
        if (word == name) return means;
    throw Error(fmt::format("--launcher {}: there are auto and mpiexec", word), ExitCode::usage);
}

std::unique_ptr<Launcher> make_launcher(LauncherName, LaunchPlan plan, std::optional<TerminalInput> input) {
    return std::make_unique<Mpiexec>(std::move(plan), std::move(input));
}

}  // namespace fermata::launch
