// The exchange of message logs: what all ranks say of theirs is put together, and each hears what that means
// for it. In a renewal, and in a restart of ranks that keep one.
#pragma once

#include "root/checkpoint/job.h"
#include "tree/tally.h"

namespace fermata::root {

// All ranks have said it (Tally::each_log). Throws Error when it is not to be understood.
void exchange_logs(Job& job, const tree::Tally& tally, uint32_t epoch);

}  // namespace fermata::root
