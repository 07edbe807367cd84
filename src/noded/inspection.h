// What a node daemon does in a thread of its own about generations that are in files: its share of the images
// there is compared, and mended from this node's memory, as that is from them (level/repair.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "wire/message.h"

namespace fermata::noded {

struct FilesOfJob {
    std::string directory;
    std::string key_file;  // of the images; "" = none
};

// `shares`: of this node. `given_up` ends it between two images. What cannot be looked at is left with
// the reason; nothing throws.
wire::Inspected inspect(const FilesOfJob& files, const std::vector<wire::Repair>& shares,
                        const std::function<bool()>& given_up);

}  // namespace fermata::noded
