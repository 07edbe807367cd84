#include "report/phases.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/text.h"
#include "draw/chart.h"
#include "report/html.h"
#include "report/shades.h"

namespace fermata::report {
namespace {

constexpr const char* kPhases[] = {"request", "targets", "converge", "freeze",
                                   "drain",   "suspend", "commit",   "resume"};
constexpr size_t kPhaseCount = std::size(kPhases);
constexpr double kLeft = 190, kWidth = 1100;

std::vector<const journal::CheckpointTaken*> with_phases(const journal::History& job) {
    std::vector<const journal::CheckpointTaken*> all;
    for (const journal::Life& life : job.lives)
        for (const journal::CheckpointTaken& one : life.checkpoints)
            if (!one.phases.empty()) all.push_back(&one);
    if (all.size() > kMostColumns) all.erase(all.begin(), all.end() - static_cast<ptrdiff_t>(kMostColumns));
    return all;
}

template <class Each>
void each_phase(const journal::History& job, Each each) {
    for (const journal::Life& life : job.lives)
        for (const journal::CheckpointTaken& one : life.checkpoints)
            for (const journal::PhaseTaken& phase : one.phases) each(phase);
}

}  // namespace

std::string heat_map(const journal::History& job) {
    const auto all = with_phases(job);
    std::vector<const char*> rows;  // those that are in the journal
    for (const char* phase : kPhases)
        if (std::any_of(all.begin(), all.end(), [&](const journal::CheckpointTaken* one) {
                return std::any_of(one->phases.begin(), one->phases.end(),
                                   [&](const journal::PhaseTaken& taken) { return taken.name == phase; });
            }))
            rows.push_back(phase);
    if (rows.empty()) return "<p>No checkpoint is in the journal with its phases.</p>\n";
    const double room = std::min(60.0, (kWidth - 15 - kLeft) / static_cast<double>(all.size()));
    const double bottom = 14 + kCell * static_cast<double>(rows.size());
    draw::Svg svg(kWidth, bottom + 60, "seconds of each phase of each checkpoint");
    for (size_t row = 0; row < rows.size(); ++row)
        svg.text({4, 29 + kCell * static_cast<double>(row)}, rows[row]);
    for (size_t column = 0; column < all.size(); ++column) {
        const journal::CheckpointTaken& one = *all[column];
        const double x = kLeft + room * static_cast<double>(column);
        for (size_t row = 0; row < rows.size(); ++row) {
            double sum = 0;
            const journal::PhaseTaken* newest = nullptr;
            for (const journal::PhaseTaken& phase : one.phases)
                if (phase.name == rows[row]) sum += phase.seconds, newest = &phase;
            if (newest)
                svg.rect(x, 14 + kCell * static_cast<double>(row), room - 1, kCell - 2, shade(sum),
                         fmt::format("{}: {} {}{}", one.ok ? one.generation : "not made", rows[row],
                                     human_duration(sum),
                                     newest->last.empty() ? "" : ", the last on " + newest->last));
        }
        if (!one.ok) svg.rect(x, bottom, room - 1, 4, "lost", one.line);
    }
    svg.text({4, bottom + 14}, "checkpoints, oldest left; red: not made", "dim");
    scale_of_shades(svg, kLeft, bottom + 30);
    return svg.inner();
}

std::string nodes_map(const journal::History& job) {
    struct Row {
        double total = 0, sums[kPhaseCount] = {};
        size_t counts[kPhaseCount] = {};
    };
    std::map<std::string, Row> nodes;
    each_phase(job, [&](const journal::PhaseTaken& phase) {
        for (size_t i = 0; i < kPhaseCount; ++i)
            if (!phase.last.empty() && phase.name == kPhases[i]) {
                Row& row = nodes[phase.last];
                row.total += phase.seconds;
                row.sums[i] += phase.seconds;
                ++row.counts[i];
            }
    });
    if (nodes.empty()) return {};
    std::vector<std::pair<std::string, Row>> rows(nodes.begin(), nodes.end());
    std::stable_sort(rows.begin(), rows.end(),
                     [](auto& a, auto& b) { return a.second.total > b.second.total; });
    const size_t left_out = rows.size() - std::min(rows.size(), kMostNodes);
    rows.resize(rows.size() - left_out);
    const double room = 95;
    draw::Svg svg(kWidth, 60 + kCell * static_cast<double>(rows.size()) + 30,
                  "nodes that came last, by phase");
    for (size_t i = 0; i < kPhaseCount; ++i)
        svg.text({kLeft + room * (static_cast<double>(i) + 0.5), 16}, kPhases[i], "dim",
                 draw::Svg::Anchor::middle);
    double y = 24;
    for (const auto& [node, row] : rows) {
        svg.text({4, y + 14}, visible(node).substr(0, 26));
        for (size_t i = 0; i < kPhaseCount; ++i)
            if (row.counts[i] > 0)
                svg.rect(kLeft + room * static_cast<double>(i), y, room - 2, kCell - 2, shade(row.sums[i]),
                         fmt::format("{}: the last in {} of {} checkpoints, {} in all", node, kPhases[i],
                                     row.counts[i], human_duration(row.sums[i])));
        y += kCell;
    }
    if (left_out > 0) svg.text({4, y + 14}, fmt::format("and {} more nodes, each for less", left_out), "dim");
    scale_of_shades(svg, kLeft, y + 24);
    return svg.inner();
}

std::string bandwidths(const journal::History& job, double floor) {
    std::vector<draw::Point> bars;
    double best = 0;
    for (const journal::CheckpointTaken* one : job.good()) {
        if (one->bandwidth <= 0) continue;
        bars.push_back({0, one->bandwidth});
        best = std::max(best, one->bandwidth);
    }
    if (bars.empty()) return "<p>No checkpoint is in the journal with its bandwidth.</p>\n";
    if (bars.size() > 2 * kMostColumns)
        bars.erase(bars.begin(), bars.end() - static_cast<ptrdiff_t>(2 * kMostColumns));
    auto rate = [](double value) { return human_size(static_cast<uint64_t>(std::max(0.0, value))) + "/s"; };
    const double high = std::max(best, floor) * 1.15;
    draw::Chart chart{
        "Bandwidth of checkpoints, suspend to commit",
        {"good checkpoints, oldest left", 0, 1, false, [](double) { return std::string(); }, {0, 1}},
        {"", 0, high, false, rate, {}},
        {},
        bars,
        {},
        {}};
    if (floor > 0)
        chart.floors.push_back({{0, floor}, fmt::format("measured for this storage: {}", rate(floor)), ""});
    else
        chart.floors.push_back({{0, best}, fmt::format("best of this job: {}", rate(best)), ""});
    draw::Svg svg(kWidth, 230, chart.title);
    chart.draw(svg, 0, 0, kWidth, 230);
    return svg.inner();
}

std::string waits(const journal::History& job) {
    struct Row {
        size_t times = 0;
        double seconds = 0;
        std::string phase;
    };
    std::map<std::string, Row> found;
    each_phase(job, [&](const journal::PhaseTaken& phase) {
        for (size_t at = 0; at < phase.waits.size();) {
            const size_t end = std::min(phase.waits.find('\n', at), phase.waits.size());
            if (end > at) {
                Row& row = found[phase.waits.substr(at, end - at)];
                ++row.times;
                row.seconds += phase.seconds;
                row.phase = phase.name;
            }
            at = end + 1;
        }
    });
    if (found.empty())
        return "<p>No phase took so long that ranks were asked where they wait (two seconds).</p>\n";
    std::vector<std::pair<std::string, Row>> rows(found.begin(), found.end());
    std::stable_sort(rows.begin(), rows.end(),
                     [](auto& a, auto& b) { return a.second.seconds > b.second.seconds; });
    const size_t left_out = rows.size() - std::min(rows.size(), kMostWaits);
    rows.resize(rows.size() - left_out);
    std::vector<std::vector<std::string>> cells;
    for (const auto& [line, row] : rows)
        cells.push_back({draw::escaped(line, 200), draw::escaped(row.phase, 40),
                         count("waits.times", row.times), seconds("waits.seconds", row.seconds)});
    std::string text = table({"who waited where", "phase", "times", "these phases took"}, cells);
    if (left_out > 0) text += fmt::format("<p>and {} more.</p>\n", count("waits.more", left_out));
    return text;
}

}  // namespace fermata::report
