// This header turns durations, sizes and names into the text that people read, and back.
#pragma once

#include <time.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace fermata {

// Seconds: a hundred years, so that no sum or conversion of durations overflows.
inline constexpr double kLongestDuration = 100 * 365.25 * 86400;
// "0.2s", "10m", "1h30m", "500ms", or plain seconds -> seconds, 0 to kLongestDuration; throws Error naming
// `what`.
double parse_duration(const std::string& text, const std::string& what);
// "16GB", "16GiB", "500MB/s" where `rate`, or plain bytes -> bytes, more than 0; throws Error naming `what`.
double parse_bytes(const std::string& text, const std::string& what, bool rate = false);
// 90 -> "1.5 min"
std::string human_duration(double seconds);
// 1536 -> "1.5 KiB"
std::string human_size(uint64_t bytes);
// "2026-11-21 16:00:00", of this machine's time zone
std::string local_time_text(time_t when);

// {1, 2, 3, 7} -> "1-3,7"
std::string text_of_numbers(const std::set<uint32_t>& numbers);

// Text of files and programs for a terminal: control characters and what is no UTF-8 as \x1b, so that nothing
// moves the cursor or fakes a line.
std::string visible(const std::string& text);
// Any bytes (names of programs and files need not be UTF-8) as UTF-8, and back without a loss: what is none
// becomes characters for private use, U+10FF00 plus the byte.
std::string as_utf8(const std::string& bytes);
std::string bytes_of_utf8(const std::string& text);
// The wait status of a child that has ended: "signal 9", "exit code 1".
std::string text_of_end(int status);
// For a line that a shell shall take as it is.
std::string shell_quoted(const std::string& word);

// The candidate that `word` probably was meant to be; empty = none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace fermata
