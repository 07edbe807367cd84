// This header writes what `fermata help` says besides the options themselves: usage, examples, exit codes,
// and where the pages are; manual pages and completion of shells are made of the same.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace fermata::cli {

// Usage lines and footers for the command and all its subcommands, which have been added.
void describe(CLI::App& app);

std::string help_of(const CLI::App& app);  // of the command
std::string help_of(const CLI::App& app, const CLI::App& subcommand);
// Words behind "Usage: fermata run ", and what follows the options: examples, then paragraphs.
std::string usage_of(const CLI::App& app);
std::string examples_of(const CLI::App& app);
extern const char* const kExitCodes;

// A word that stands for an option's value, "" for a flag.
std::string value_of(const CLI::Option& option);
// The subcommands, in the order of the help.
std::vector<CLI::App*> commands_of(const CLI::App& app);

// The subcommand of this name. Throws when there is none, with the one that is near.
CLI::App& command_of(const CLI::App& app, const std::string& name);

}  // namespace fermata::cli
