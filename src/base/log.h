// This header has the log for developers and the lines for users. The log is off unless FERMATA_LOG is trace,
// debug, info, warn or error; what a user must read goes through Error or `say`.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace fermata {

// Reads FERMATA_LOG; `name` marks every line (e.g. "rank 3", "root").
void start_log(const std::string& name);

// One line on stderr, "fermata: <line>".
void say(const std::string& line);

}  // namespace fermata
