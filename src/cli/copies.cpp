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

void add_replicas(CLI::App* app, ReplicasWords& w) {
    app->add_option(
           "--of", w.of,
           "ranks that have a copy from now on: all, a number, a part (50%), a list, or +LIST, -LIST "
           "to change it (or: replicas 50%)")
        ->type_name("all|N|P%|LIST");
    app->add_option("--timeout", w.timeout, "wait for these copies at most so long (default 1m)")
        ->type_name("T");
    app->add_flag("--json", w.json, "answer as JSON");
}

ReplicasOptions options_of(const ReplicasWords& w) {
    return {w.which, w.of, w.timeout.empty() ? 0 : parse_duration(w.timeout, "--timeout"), w.json};
}

namespace {

void print_log(const json& log) {
    if (!log.is_object() || log.value("ranks", json::array()).empty()) return;
    auto size = [](const json& of, const char* name) { return human_size(of.value(name, uint64_t{0})); };
    fmt::print("  message log  {} in memory", size(log, "held"));
    if (log.value("spilled", uint64_t{0}) > 0) fmt::print(", {} in files", size(log, "spilled"));
    for (const json& rank : log["ranks"])
        if (rank.value("rank", -1) == log.value("largest", -2))
            fmt::print("; most of rank {}: {} and {}", rank.value("rank", 0), size(rank, "held"),
                       size(rank, "spilled"));
    fmt::print("\n");
}

}  // namespace

void print_copies(const json& replicas) {
    if (!replicas.is_object()) return;
    print_log(replicas.value("log", json()));
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
