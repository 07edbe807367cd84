// Words are those of `--levels`: which levels a job has and how often.
#pragma once

#include <string>

#include "level/levels.h"

namespace fermata::keeping {

// Throws Error (exit code 2) that names the word that is wrong.
level::Levels parse_levels(const std::string& words);
// Writes the levels as parse_levels() reads them.
std::string text_of(const level::Levels& levels);

}  // namespace fermata::keeping
