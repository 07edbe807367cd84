// The end of the time that a batch system has given to the job that this process is part of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fermata::life {

// Seconds from now until Slurm ends its job, or none: there is no Slurm, or no limit. `ask`: the scheduler
// itself, which takes a moment (at most 3 s), else only what it has put into the environment: the limit may
// have been changed since.
std::optional<double> seconds_left_in_slot(bool ask);

// "2026-11-26T10:00:00" of this machine's time zone, as squeue writes it: seconds since 1970.
std::optional<int64_t> time_of_squeue(const std::string& text);

}  // namespace fermata::life
