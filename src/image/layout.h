// Layout says how the images of a generation lie in its directory: each in a file of its own, all in one, or
// those of a node or of so many neighbouring ranks in one.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/rank.h"

namespace fermata::image {

// Inside the directory of its generation: the file of all ranks.
inline constexpr const char* kSharedName = "ranks.img";
// The file of some ranks, by the lowest of them: ranks-000017.img.
std::string group_name(Rank lowest);
std::optional<Rank> lowest_of_group(std::string_view name);

class Layout {
  public:
    enum class Kind { files, shared, node, group };

    constexpr Layout() = default;
    static constexpr Layout shared() { return Layout(Kind::shared, 0); }
    static constexpr Layout node() { return Layout(Kind::node, 0); }
    static constexpr Layout group(uint32_t ranks) { return Layout(Kind::group, ranks); }
    // "files", "shared", "node", "group:16"
    static std::optional<Layout> of(std::string_view word);
    std::string word() const;

    Kind kind() const { return kind_; }
    // Several images lie in one file.
    bool together() const { return kind_ != Kind::files; }
    // Together, and not all in one.
    bool in_groups() const { return kind_ == Kind::node || kind_ == Kind::group; }
    // Ranks in each group but the last one.
    uint32_t ranks() const { return ranks_; }
    // Name of the file of a rank, on a node with this one as the lowest.
    std::string file_of(Rank rank, Rank lowest_of_node) const;
    bool operator==(const Layout&) const = default;

  private:
    constexpr Layout(Kind kind, uint32_t ranks) : kind_(kind), ranks_(ranks) {}
    Kind kind_ = Kind::files;
    uint32_t ranks_ = 0;
};

}  // namespace fermata::image
