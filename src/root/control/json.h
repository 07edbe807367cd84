// This header makes the text that goes to clients of the control socket.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace fermata::root {

inline constexpr size_t kMostListed = 4096;  // ranks, in lists of an answer, which stays short

// Text of ranks may hold anything; JSON must not.
inline std::string dump(const nlohmann::json& j) {
    return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace fermata::root
