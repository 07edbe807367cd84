// This header has the work of a node daemon on generations in files, in a thread of its own: its share of the
// images there is compared, and mended from this node's memory, as that is from them (level/repair.h).
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

// `shares`: of this node. `given_up` ends it between two images. An image that cannot be looked at is left
// with the reason; nothing throws.
wire::Inspected inspect(const FilesOfJob& files, const std::vector<wire::Repair>& shares,
                        const std::function<bool()>& given_up);

}  // namespace fermata::noded
