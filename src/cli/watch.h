// This header shows a job's journal as it grows: `fermata status --watch`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fermata::cli {

// Prints the newest events of this job in the checkpoint directory and then each one as it comes, until the
// job is over. `running`: whether it can be reached at this moment; between two lives it cannot.
void watch(const std::string& ckpt_dir, uint64_t job, bool as_json, const std::function<bool()>& running);

}  // namespace fermata::cli
