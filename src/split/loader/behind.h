// Which MPI program will a starter start? Read off its arguments and the text of scripts; nothing is run, so
// variables stay what they are, and the answer is a guess. Nothing but the choice of a library and
// `fermata run --check` may stand on it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "split/loader/program.h"

namespace fermata::split {

// `starter`: of inspect_program(command[0]).
std::optional<ProgramCheck> program_behind(const std::vector<std::string>& command,
                                           const ProgramCheck& starter, const std::string& front_dir);

}  // namespace fermata::split
