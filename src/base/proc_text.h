// This header reads the kernel's text files below /proc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fermata {

// Returns all of a file; "" when it cannot be read.
std::string read_proc(const std::string& path);
// Returns the value of a line "key:\tvalue" of such a file; "" when no line has this key.
std::string field(const std::string& text, const std::string& key);
// Returns the number that a text begins with; nothing when it begins with something else.
std::optional<uint64_t> number_at_start(const std::string& text);

}  // namespace fermata
