// The number of a generation. On disk and to people a generation has a name, gen-000002; everywhere else it
// is this number, and only here one becomes the other.
#pragma once

#include <fmt/core.h>

#include <charconv>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fermata {

class Generation {
  public:
    // A larger number is not a generation of ours.
    static constexpr uint32_t kLast = 999'999'999;

    constexpr Generation() = default;  // none
    constexpr explicit Generation(uint32_t number) : number_(number) {}
    // "gen-000002", and nothing else that reads like it.
    static std::optional<Generation> named(std::string_view name) {
        if (!name.starts_with(kPrefix)) return {};
        auto generation = numbered(name.substr(kPrefix.size()));
        if (!generation || generation->name() != name) return {};
        return generation;
    }
    // "2"
    static std::optional<Generation> numbered(std::string_view digits) {
        uint32_t number = 0;
        const char* end = digits.data() + digits.size();
        auto [at, error] = std::from_chars(digits.data(), end, number);
        if (error != std::errc{} || at != end || number == 0 || number > kLast) return {};
        return Generation(number);
    }

    constexpr uint32_t number() const { return number_; }
    constexpr explicit operator bool() const { return number_ != 0; }
    std::string name() const { return number_ ? fmt::format("{}{:06}", kPrefix, number_) : std::string(); }
    std::strong_ordering operator<=>(const Generation&) const = default;

  private:
    static constexpr std::string_view kPrefix = "gen-";
    uint32_t number_ = 0;
};

}  // namespace fermata
