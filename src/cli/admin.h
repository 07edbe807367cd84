// This header has the findings of `fermata doctor --admin`: limits, file systems and Slurm as whoever runs
// the machine has set them. Each says what is, what follows for jobs, and what to do.
#pragma once

#include <string>
#include <vector>

#include "cli/finding.h"

namespace fermata::cli {

// Limits and settings of the kernel's.
std::vector<Finding> limits_of_machine();
// The file system of checkpoints (or of the directory that this one would be made in), and those of what
// lives as long as a job.
std::vector<Finding> file_systems(const std::string& ckpt_dir);
// Settings of Slurm that jobs notice; one line where there is no Slurm.
std::vector<Finding> slurm_around();

}  // namespace fermata::cli
