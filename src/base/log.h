// Diagnostics for developers: off unless FERMATA_LOG is trace, debug, info, warn or error. What a user must
// read goes through Error or `say` instead.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace fermata {

// Reads FERMATA_LOG; `name` marks every line (e.g. "rank 3", "root").
void start_log(const std::string& name);

// One line on stderr, "fermata: <line>".
void say(const std::string& line);

}  // namespace fermata
