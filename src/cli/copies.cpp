#include "cli/copies.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace fermata::cli {

using nlohmann::json;

namespace {

constexpr size_t kMostLines = 64;  // --json has all

void print_one(const json& rank) {
    auto text = [&](const char* name) { return visible(rank.value(name, std::string())); };
    fmt::print("    rank {:<7} ", rank.value("rank", 0));
    if (rank.contains("pid"))
        return fmt::print("follows, pid {} on {}\n", rank.value("pid", 0), text("host"));
    fmt::print("{}{}{}\n", text("copy"), text("why").empty() ? "" : ": ", text("why"));
}

}  // namespace

void print_copies(const json& replicas) {
    if (!replicas.is_object()) return;
    auto number = [&](const char* name) { return replicas.value(name, uint64_t{0}); };
    const json ranks = replicas.value("ranks", json::array());
    fmt::print("  copies       {} of {} wanted, membership {}", number("had"), number("wanted"),
               number("epoch"));
    if (const uint64_t masked = number("masked"); masked > 0)
        fmt::print(", {} failure{} masked in {:.2f} s{}", masked, masked == 1 ? "" : "s",
                   replicas.value("masked_seconds", 0.0) / static_cast<double>(masked),
                   masked == 1 ? "" : " each");
    fmt::print("\n");
    size_t lines = 0;
    for (const json& rank : ranks) {
        if (++lines > kMostLines) {
            fmt::print("    {} ranks more: --json\n", ranks.size() - kMostLines);
            break;
        }
        print_one(rank);
    }
}

}  // namespace fermata::cli
