// POSIX message queues.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/fd.h"

namespace fermata::split::shared {

// Returns the process that hears of a message (mq_notify), 0 = none.
int somebody_to_notify(int descriptor);
// `content`: its messages, too; they are taken out and put back for that, while all ranks stand.
nlohmann::json describe_queue(int descriptor, bool content, std::vector<std::string>& warnings);
// With the messages of the image and no others. Throws fermata::Error.
Fd make_queue(const nlohmann::json& described, std::vector<std::string>& warnings);

}  // namespace fermata::split::shared
