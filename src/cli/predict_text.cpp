// This file prints the answer of `fermata predict` for people: the same numbers as in its JSON.
#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "cli/predict.h"
#include "predict/advice.h"
#include "predict/source.h"

namespace fermata::cli {
namespace {

using nlohmann::ordered_json;
using predict::percent;

std::string duration(const ordered_json& seconds) {
    return seconds.is_number() ? human_duration(seconds.get<double>()) : "never";
}
std::string share(const ordered_json& value) {
    return value.is_number() ? percent(value.get<double>()) : "without end";
}
std::string word(const ordered_json& one, const char* name) {
    return visible(one.at(name).get<std::string>());
}
std::string rate(double bytes) { return human_size(static_cast<uint64_t>(bytes)) + "/s"; }

std::string source(const ordered_json& one) {
    return fmt::format("    {}\n    {}\n", word(one, "formula"), word(one, "paper"));
}

std::string numbers(const ordered_json& all) {
    struct {
        const char *name, *title;
        bool bytes;
    } constexpr kRows[] = {{"checkpoint", "cost of a checkpoint", false},
                           {"recovery", "cost of a recovery", false},
                           {"mtbf", "time between failures of the job", false},
                           {"rank_mtbf", "time between failures of a process", false},
                           {"interval", "interval", false},
                           {"bytes", "size of a checkpoint", true},
                           {"bandwidth", "bandwidth", true}};
    std::string text;
    for (auto& [name, title, bytes] : kRows) {
        auto found = all.find(name);
        if (found == all.end()) continue;
        const double value = found->at("value").get<double>();
        text +=
            fmt::format("{:<36}{:>12}   {}\n", title,
                        !bytes                                  ? human_duration(value)
                        : name == std::string_view("bandwidth") ? rate(value)
                                                                : human_size(static_cast<uint64_t>(value)),
                        word(*found, "from"));
    }
    return text;
}

std::string intervals(const ordered_json& all) {
    std::string text =
        fmt::format("\n{:<16}{:>12}{:>12}{:>12}\n", "interval", "every", "costs", "efficiency");
    for (const ordered_json& one : all)
        text += fmt::format("{:<16}{:>12}{:>12}{:>12}\n", word(one, "name"), duration(one.at("seconds")),
                            share(one.at("loss")), share(one.at("efficiency")));
    for (const ordered_json& one : all)
        if (one.contains("formula")) text += fmt::format("  {}\n{}", word(one, "name"), source(one));
    text += fmt::format("  costs\n    {}\n    {}\n", predict::kExpected.formula, predict::kExpected.paper);
    return text;
}

std::string over_mtbf(const ordered_json& all) {
    std::string text =
        fmt::format("\n{:<28}{:>12}{:>12}\n", "failures of the job every", "interval", "efficiency");
    for (const ordered_json& one : all)
        text += fmt::format("{:<28}{:>12}{:>12}\n", duration(one.at("mtbf")), duration(one.at("interval")),
                            share(one.at("efficiency")));
    return text;
}

std::string levels(const ordered_json& plan) {
    std::string text =
        fmt::format("\n{:<20}{:>12}{:>14}{:>12}\n", "level", "costs", "needed every", "period");
    for (const ordered_json& one : plan.at("levels"))
        text += one.at("used") == true
                    ? fmt::format("{:<20}{:>12}{:>14}{:>12}\n", word(one, "name"), duration(one.at("cost")),
                                  duration(one.at("mtbf")), duration(one.at("period")))
                    : fmt::format("{:<20}{:>12}  costs more than it saves: left out\n", word(one, "name"),
                                  duration(one.at("cost")));
    return text + fmt::format("all levels together cost {}\n", share(plan.at("loss"))) + source(plan);
}

std::string dump(const ordered_json& one) {
    std::string text = fmt::format("\na dump of {} at {}: {} at best",
                                   human_size(static_cast<uint64_t>(one.at("bytes").get<double>())),
                                   rate(one.at("bandwidth").get<double>()), duration(one.at("ideal")));
    if (one.contains("fill_time"))
        text += fmt::format(" (memory is {} of the storage, which is filled in {})", share(one.at("ratio")),
                            duration(one.at("fill_time")));
    if (one.contains("expected"))
        text += fmt::format("\n  expected {}: {:.1f} times that, at {} ({})\n", duration(one.at("expected")),
                            one.at("times_ideal").get<double>(),
                            rate(one.at("measured_bandwidth").get<double>()), word(one, "from"));
    else
        text += fmt::format("\n  expected {} to {} ({})\n", duration(one.at("expected_least")),
                            duration(one.at("expected_most")), word(one, "from"));
    return text + source(one);
}

std::string replication(const ordered_json& all) {
    std::string text =
        fmt::format("\n{:<8}{:>12}{:>14}{:>10}", "copies", "processes", "interrupted", "times");
    const bool intervals = all.at("shares").at(0).contains("not_replaced");
    text += intervals ? fmt::format("{:>12}{:>10}   dead copies\n", "interval", "costs") : "\n";
    std::vector<std::string> sources;
    auto cite = [&](const ordered_json& one) {
        std::string cited = source(one);
        if (std::find(sources.begin(), sources.end(), cited) == sources.end()) sources.push_back(cited);
    };
    for (const ordered_json& one : all.at("shares")) {
        text += fmt::format("{:<8}{:>12}{:>14}{:>10.4f}", share(one.at("share")),
                            one.at("processes").get<uint64_t>(), duration(one.at("mtti")),
                            one.at("relative").get<double>());
        cite(one);
        bool first = true;
        for (const char* way : {"not_replaced", "replaced"}) {
            if (!one.contains(way)) continue;
            text += fmt::format("{}{:>12}{:>10}   {}\n", first ? "" : std::string(44, ' '),
                                duration(one.at(way).at("interval")), share(one.at(way).at("loss")),
                                first ? "are not replaced" : "are replaced at each checkpoint");
            cite(one.at(way));
            first = false;
        }
        if (first) text += "\n";
    }
    for (const std::string& cited : sources) text += cited;
    return text;
}

}  // namespace

std::string text_of(const ordered_json& answer) {
    std::string text = numbers(answer.at("numbers"));
    if (answer.contains("intervals")) text += intervals(answer.at("intervals"));
    if (answer.contains("over_mtbf")) text += over_mtbf(answer.at("over_mtbf"));
    if (answer.contains("expected"))
        text += fmt::format("\n{} of work take {} (Daly 2006)\n", duration(answer.at("expected").at("work")),
                            duration(answer.at("expected").at("seconds")));
    if (answer.contains("levels")) text += levels(answer.at("levels"));
    if (answer.contains("dump")) text += dump(answer.at("dump"));
    if (answer.contains("replication")) text += replication(answer.at("replication"));
    if (answer.contains("advice")) text += "\n";
    if (answer.contains("advice"))
        for (const ordered_json& line : answer.at("advice")) text += line.get<std::string>() + "\n";
    for (const ordered_json& line : answer.at("remarks")) text += "note: " + line.get<std::string>() + "\n";
    return text;
}

}  // namespace fermata::cli
