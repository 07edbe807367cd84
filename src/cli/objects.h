// This header reads which objects of MPI an image names, for `fermata inspect --objects`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "image/image.h"

namespace fermata::cli {

// Counts the MPI objects of one rank by kind, and describes them; null when the image says nothing of them.
nlohmann::json objects_of(const image::Reader& reader);
// For people: one line of the numbers; a line for each object.
std::string numbers_line(const nlohmann::json& objects);
std::string object_line(const nlohmann::json& object);

}  // namespace fermata::cli
