// Completion of command lines by shells, made of what the help is made of: commands, options, and what may
// follow an option.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace fermata::cli {

// `shell`: bash, zsh or fish. Throws Error for others.
std::string completion_of(const CLI::App& app, const std::string& shell);

}  // namespace fermata::cli
