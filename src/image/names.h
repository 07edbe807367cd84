// This header tells which names are those of images.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "image/image.h"

namespace fermata::image {

inline bool is_image_name(const std::string& name) {
    constexpr std::string_view kBegin = "rank-", kEnd = ".img";
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return false;
    const std::string digits = name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
    uint32_t number = 0;
    auto [at, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc{} || at != digits.data() + digits.size()) return false;
    auto rank = Rank::of(number);
    return rank && image_name(*rank) == name;
}

}  // namespace fermata::image
