// Hosts are where the launcher `own` may start ranks, and how many on each: from --hosts, a hostfile, or this
// machine. Hostfiles are read as far as Open MPI and Hydra read them alike, and each one's own way to say
// slots.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fermata::launch::own {

struct Host {
    std::string name;
    uint32_t slots = 0;  // 0 = as many as the host has cores
    bool given = false;  // somebody has said the number
    bool operator==(const Host&) const = default;
};

inline constexpr uint32_t kMostSlots = 1'000'000;
inline constexpr size_t kMostHosts = 100'000;

// "a,b:4,c": one slot where no number stands; a name that comes again has the sum. Throws Error (exit code
// 2).
std::vector<Host> hosts_in_list(std::string_view list);
// Lines "name", "name slots=4", "name:4", "# comment". `where`: for the error's line.
std::vector<Host> hosts_in_file(std::string_view text, const std::string& where);
// "2(x3),1": tasks per node, as Slurm writes it.
std::vector<uint32_t> slurm_counts(std::string_view text);

// This machine, by any of its names.
bool is_here(const std::string& name);

}  // namespace fermata::launch::own
