#include "launch/make.h"

#include <utility>

#include "base/error.h"
#include "launch/launcher_options.h"
#include "launch/mpiexec.h"
#include "launch/own/own.h"
#include "launch/programs.h"
#include "launch/slurm.h"
#include "launch/srun.h"

namespace fermata::launch {

LauncherName launcher_named(const std::string& word) {
    constexpr std::pair<const char*, LauncherName> kNames[] = {{"auto", LauncherName::automatic},
                                                               {"mpiexec", LauncherName::mpiexec},
                                                               {"srun", LauncherName::srun},
                                                               {"own", LauncherName::own}};
    for (auto& [name, means] : kNames)
        if (word == name) return means;
    throw Error(fmt::format("--launcher {}: there are auto, mpiexec, srun and own", word), ExitCode::usage);
}

bool needs_mpiexec(LauncherName name) {
    return name == LauncherName::mpiexec ||
           (name == LauncherName::automatic && !(in_allocation() && !in_path("srun").empty()));
}

// Words that only mpiexec knows say whom the user means.
LauncherName choose_launcher(LauncherName name, const Library& library,
                             const std::vector<std::string>& words) {
    if (name != LauncherName::automatic) return name;
    std::string srun = in_allocation() ? in_path("srun") : "";
    bool slurm =
        !srun.empty() && are_options_of("srun", words) && !plugin_for(library.mpi, mpi_plugins(srun)).empty();
    return slurm ? LauncherName::srun : LauncherName::mpiexec;
}

std::string options_name(LauncherName name, const Library& library) {
    return name == LauncherName::srun ? "srun" : library.mpi;
}

std::unique_ptr<Launcher> make_launcher(LauncherName name, LaunchPlan plan,
                                        std::optional<TerminalInput> input) {
    if (name == LauncherName::srun) return std::make_unique<Srun>(std::move(plan), std::move(input));
    if (name == LauncherName::own) return std::make_unique<own::Own>(std::move(plan), std::move(input));
    if (plan.spares > 0)
        throw Error(
            "--spares: mpiexec chooses the nodes itself: take --launcher own (with --hosts or --hostfile) or "
            "srun",
            ExitCode::usage);
    need_mpiexec(plan.library);
    return std::make_unique<Mpiexec>(std::move(plan), std::move(input));
}

}  // namespace fermata::launch
