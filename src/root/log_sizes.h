// LogSizes knows how large the ranks' message logs are, by their last word.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>

#include "wire/message_log.h"

namespace fermata::root {

class LogSizes {
  public:
    // True: more of this log is in files than before by so much that somebody should hear of it.
    bool heard(const wire::LogSize& said);
    // Lists those that hold anything, with the sum and the largest.
    nlohmann::json to_json() const;

  private:
    struct Size {
        uint64_t held = 0, spilled = 0, noted = 0;
    };
    std::map<int32_t, Size> sizes_;
};

}  // namespace fermata::root
