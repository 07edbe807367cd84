// A manual page of the command, or of a subcommand, made of what its help is made of.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace fermata::cli {

// In the language of man(7). `command` is `app` itself, or one of its subcommands.
std::string manual_of(const CLI::App& app, const CLI::App& command);

}  // namespace fermata::cli
