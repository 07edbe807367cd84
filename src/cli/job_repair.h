// This header asks a running job to mend what the memory of its nodes holds, for `fermata verify --repair`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fermata::cli {

struct JobRepair {
    using Lines = std::map<std::string, std::vector<std::string>>;  // by the name of a generation
    Lines mended, left;
};

// Has the job that writes to this directory repair one generation or all; nothing when none runs on this
// machine. Throws Error when that job cannot do it, or ends before it is done.
JobRepair repair_by_job(const std::string& ckpt_dir, std::optional<uint32_t> generation);

}  // namespace fermata::cli
