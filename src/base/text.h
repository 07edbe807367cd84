// Durations and sizes as people write and read them.
#pragma once

#include <time.h>

#include <cstdint>
#include <string>

namespace fermata {

// "0.2s", "10m", "1h30m", "500ms", or plain seconds -> seconds; throws Error naming `what`.
double parse_duration(const std::string& text, const std::string& what);
// 1536 -> "1.5 KiB"
std::string human_size(uint64_t bytes);
// "2026-11-21 16:00:00", of this machine's time zone
std::string local_time_text(time_t when);

}  // namespace fermata
