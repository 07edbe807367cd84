// The site's own mpiexec as the launcher.
#pragma once

#include <string>
#include <vector>

#include "launch/launcher_process.h"

namespace fermata::launch {

// The launcher's command line.
std::vector<std::string> command_of(const LaunchPlan& plan);

class Mpiexec : public LauncherProcess {
  public:
    using LauncherProcess::LauncherProcess;

  protected:
    CommandLine command_line() const override;
};

}  // namespace fermata::launch
