// Environment variables that keep a program's libraries from choosing their code by more than a level of
// CPUs.
#pragma once

#include <map>
#include <string>

#include "base/cpu_level.h"

namespace fermata::life {

// Gives the variables and their values. Those that the user has set stay: `tunables` is the GLIBC_TUNABLES of
// the environment ("" = none), to which ours are added, and no other variable that is set is among them.
// Words of glibc 2.36 to 2.43, OpenBLAS 0.3, MKL 2024 and NumPy 1.20 to 2.3; others take no notice.
std::map<std::string, std::string> cpu_environment(const CpuLevel& level, const std::string& tunables);

}  // namespace fermata::life
