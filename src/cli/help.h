// This header writes what `fermata help` says besides the options themselves: usage, examples, exit codes,
// and where the pages are.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace fermata::cli {

// Usage lines and footers for the command and all its subcommands, which have been added.
void describe(CLI::App& app);

std::string help_of(const CLI::App& app);  // of the command
std::string help_of(const CLI::App& app, const CLI::App& subcommand);
// The subcommand of this name. Throws when there is none, with the one that is near.
CLI::App& command_of(CLI::App& app, const std::string& name);

}  // namespace fermata::cli
