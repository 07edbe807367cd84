// Scheme is the K+M of the level `rs:K+M`: a group of K+M failure domains bears the loss of any M of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fermata::erasure {

class Scheme {
  public:
    // Both at least 1. A field of 256 elements allows groups of 255; those that do not fill join others.
    static constexpr unsigned kMost = 128;  // K+M

    static std::optional<Scheme> of(unsigned data, unsigned losses) {
        if (data == 0 || losses == 0 || data > kMost || losses > kMost || data + losses > kMost) return {};
        return Scheme(data, losses);
    }
    // "4+2", and nothing else that reads like it.
    static std::optional<Scheme> parse(std::string_view words);

    unsigned data() const { return data_; }
    unsigned losses() const { return losses_; }
    unsigned members() const { return data_ + losses_; }
    std::string to_text() const;
    bool operator==(const Scheme&) const = default;

  private:
    Scheme(unsigned data, unsigned losses) : data_(data), losses_(losses) {}
    unsigned data_, losses_;
};

}  // namespace fermata::erasure
