// Durations and sizes as people write and read them.
#pragma once

#include <cstdint>
#include <string>

namespace fermata {

// Seconds: a hundred years, so that no sum or conversion of durations overflows.
inline constexpr double kLongestDuration = 100 * 365.25 * 86400;
// "0.2s", "10m", "1h30m", "500ms", or plain seconds -> seconds, 0 to kLongestDuration; throws Error naming
// `what`.
double parse_duration(const std::string& text, const std::string& what);
// 1536 -> "1.5 KiB"
std::string human_size(uint64_t bytes);

}  // namespace fermata
