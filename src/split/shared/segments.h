// System V shared memory.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fermata::split::shared {

// Describes an attached segment: what is needed to make it again.
nlohmann::json describe_segment(int id, std::vector<std::string>& warnings);

struct Segment {
    int id = -1;
    void* at = nullptr;  // where the lower half has attached it
};
// The segment of the image if it is there still, else a new one, with the same number where that is allowed.
// Its content is all zero or older than the image. Throws fermata::Error.
Segment make_segment(const nlohmann::json& described, std::vector<std::string>& warnings);
// Attaches what another rank has made.
Segment attach_segment(int id);
void detach_segment(const Segment& segment) noexcept;

}  // namespace fermata::split::shared
