#include "erasure/scheme.h"

#include <fmt/core.h>

#include <charconv>

namespace fermata::erasure {

std::optional<Scheme> Scheme::parse(std::string_view words) {
    unsigned data = 0, losses = 0;
    const char* const end = words.data() + words.size();
    auto [plus, bad_data] = std::from_chars(words.data(), end, data);
    if (bad_data != std::errc{} || plus == end || *plus != '+') return {};
    auto [last, bad_losses] = std::from_chars(plus + 1, end, losses);
    if (bad_losses != std::errc{} || last != end) return {};
    auto scheme = of(data, losses);
    if (!scheme || scheme->to_text() != words) return {};  // "04+2"
    return scheme;
}

std::string Scheme::to_text() const { return fmt::format("{}+{}", data_, losses_); }

}  // namespace fermata::erasure
