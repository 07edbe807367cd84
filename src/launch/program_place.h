// The program that is to run, found once and where the site's mpiexec would find it.
#pragma once

#include <string>
#include <vector>

#include "split/loader/program.h"

namespace fermata::launch {

struct ProgramPlace {
    split::ProgramCheck check;
    // The path that ranks are told instead of the name; "" = they look for themselves: mpiexec is told to
    // change their PATH.
    std::string path;
};
// `words`: more arguments of mpiexec, of which --wdir and those about PATH matter.
ProgramPlace find_program(const std::string& name, const std::vector<std::string>& words,
                          const std::string& front_dir);

}  // namespace fermata::launch
