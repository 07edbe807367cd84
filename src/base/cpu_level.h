// CpuLevel is a level of x86-64 (System V psABI for x86-64, section 3.1.1, "Micro-Architecture Levels"): what
// a program may choose its code by, so that it can go on on any node of that level.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fermata {

struct CpuLevel {
    std::string_view name;          // "x86-64-v3"
    std::string_view instructions;  // beyond those of the level before; names as in /proc/cpuinfo
};

// Lists them from the least on.
std::vector<std::string> cpu_level_names();
// Null: no level has that name.
const CpuLevel* cpu_level(std::string_view name);
// Finds the greatest level all of whose instructions are among these names.
const CpuLevel& greatest_cpu_level(std::string_view instructions);
// Keeps of these names (with spaces between them) those that a program may use on this level.
std::string limited_to(const CpuLevel& level, std::string_view instructions);

}  // namespace fermata
