#include "launch/make.h"

#include <utility>

#include "base/error.h"
#include "launch/mpiexec.h"
#include "launch/own/own.h"

namespace fermata::launch {

LauncherName launcher_named(const std::string& word) {
    constexpr std::pair<const char*, LauncherName> kNames[] = {
        {"auto", LauncherName::automatic}, {"mpiexec", LauncherName::mpiexec}, {"own", LauncherName::own}};
    for (auto& [name, means] : kNames)
        if (word == name) return means;
    throw Error(fmt::format("--launcher {}: there are auto, mpiexec and own", word), ExitCode::usage);
}

std::unique_ptr<Launcher> make_launcher(LauncherName name, LaunchPlan plan,
                                        std::optional<TerminalInput> input) {
    if (name == LauncherName::own) return std::make_unique<own::Own>(std::move(plan), std::move(input));
    return std::make_unique<Mpiexec>(std::move(plan), std::move(input));
}

}  // namespace fermata::launch
