// This header writes the elements of a report's page: text that is escaped, numbers that name themselves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fermata::report {

// "<span data-k=… data-v=…>text</span>"
std::string number(const std::string& name, double value, const std::string& text);
std::string seconds(const std::string& name, double value);
std::string count(const std::string& name, size_t value);
std::string bytes(const std::string& name, double value);
std::string bandwidth(const std::string& name, double value);
// "2026-11-26 09:00:00 UTC"
std::string moment(const std::string& name, int64_t ms);
std::string utc(int64_t ms);

// Rows of cells that are HTML already.
std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows);

}  // namespace fermata::report
