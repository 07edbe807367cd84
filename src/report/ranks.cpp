#include "report/ranks.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "draw/svg.h"
#include "report/html.h"
#include "report/phases.h"
#include "report/shades.h"

namespace fermata::report {
namespace {

using journal::CheckpointTaken;
using journal::History;
using journal::RanksTook;

constexpr const char* kPhases[] = {"converge", "freeze", "drain", "suspend", "save"};
constexpr size_t kPhaseCount = std::size(kPhases);

const RanksTook::Phase* phase_in(const RanksTook& took, const std::string& name) {
    for (const RanksTook::Phase& phase : took.phases)
        if (phase.name == name) return &phase;
    return nullptr;
}

// Good checkpoints with times of ranks, in the same blocks as the newest has.
std::vector<const CheckpointTaken*> with_ranks(const History& job) {
    std::vector<const CheckpointTaken*> all = job.good();
    std::erase_if(all, [](const CheckpointTaken* one) { return one->took.phases.empty(); });
    if (all.empty()) return all;
    const RanksTook& newest = all.back()->took;
    std::erase_if(all, [&newest](const CheckpointTaken* one) {
        return one->took.blocks != newest.blocks || one->took.ranks != newest.ranks;
    });
    return all;
}

std::string name_of(const RanksTook& took, size_t block) {
    const int first = took.first_of(block), last = took.first_of(block + 1) - 1;
    return first == last ? fmt::format("rank {}", first) : fmt::format("ranks {}-{}", first, last);
}

// All that is in the picture; each list by blocks.
struct Cells {
    struct Sum {
        double seconds = 0, longest = 0;
        int slowest = 0;  // when it was longest
    };
    std::vector<Sum> by_phase[kPhaseCount];
    std::vector<std::vector<double>> by_checkpoint;  // of all phases together
    double longest[kPhaseCount] = {}, longest_checkpoint = 0;
};

Cells cells_of(const std::vector<const CheckpointTaken*>& all) {
    const size_t blocks = all.back()->took.blocks;
    Cells cells;
    for (auto& phase : cells.by_phase) phase.resize(blocks);
    for (const CheckpointTaken* one : all) {
        std::vector<double>& together = cells.by_checkpoint.emplace_back(blocks);
        for (size_t i = 0; i < kPhaseCount; ++i) {
            const RanksTook::Phase* phase = phase_in(one->took, kPhases[i]);
            if (phase == nullptr) continue;
            for (size_t block = 0; block < blocks; ++block) {
                Cells::Sum& sum = cells.by_phase[i][block];
                const double seconds = phase->seconds[block];
                sum.seconds += seconds;
                if (seconds >= sum.longest) sum.longest = seconds, sum.slowest = phase->slowest[block];
                together[block] += seconds;
                cells.longest[i] = std::max(cells.longest[i], sum.seconds);
            }
        }
    }
    if (cells.by_checkpoint.size() > kMostColumns)
        cells.by_checkpoint.erase(cells.by_checkpoint.begin(),
                                  cells.by_checkpoint.end() - static_cast<ptrdiff_t>(kMostColumns));
    for (const auto& column : cells.by_checkpoint)
        for (double seconds : column) cells.longest_checkpoint = std::max(cells.longest_checkpoint, seconds);
    return cells;
}

constexpr double kLabels = 130, kPhaseWidth = 60, kRight = 1085, kTop = 24;
constexpr double kCheckpoints = kLabels + kPhaseWidth * kPhaseCount + 60;

struct Rows {
    double height;
    double y(size_t block) const { return kTop + height * static_cast<double>(block); }
};

// Each phase has its own scale, for a rank that is late in a short one; but one that is nothing beside the
// others stays pale.
void draw_phases(draw::Svg& svg, const Rows& rows, const Cells& cells, const RanksTook& shape) {
    const double least = *std::max_element(std::begin(cells.longest), std::end(cells.longest)) / 50;
    svg.text({4, rows.y(shape.blocks) + 23}, "the longest:", "dim");
    for (size_t i = 0; i < kPhaseCount; ++i) {
        const double x = kLabels + kPhaseWidth * static_cast<double>(i);
        svg.text({x + kPhaseWidth / 2, 16}, kPhases[i], "dim", draw::Svg::Anchor::middle);
        for (size_t block = 0; block < shape.blocks; ++block) {
            const Cells::Sum& sum = cells.by_phase[i][block];
            svg.cell({x, rows.y(block)}, {kPhaseWidth - 1, rows.height - 1},
                     shade_of(sum.seconds, std::max(least, cells.longest[i])),
                     fmt::format("{}, {}: {} in all, at most {} (rank {})", name_of(shape, block), kPhases[i],
                                 human_duration(sum.seconds), human_duration(sum.longest), sum.slowest),
                     {fmt::format("ranks.{}", kPhases[i]), sum.seconds});
        }
        svg.text({x + kPhaseWidth / 2, rows.y(shape.blocks) + 23}, human_duration(cells.longest[i]), "dim",
                 draw::Svg::Anchor::middle);
    }
}

void draw_checkpoints(draw::Svg& svg, const Rows& rows, const Cells& cells,
                      const std::vector<const CheckpointTaken*>& all, const RanksTook& shape) {
    const size_t columns = cells.by_checkpoint.size();
    const double room = std::min(30.0, (kRight - kCheckpoints) / static_cast<double>(columns));
    svg.text({kCheckpoints, 16}, "all phases, by checkpoint, oldest left", "dim");
    for (size_t column = 0; column < columns; ++column) {
        const CheckpointTaken& one = *all[all.size() - columns + column];
        for (size_t block = 0; block < shape.blocks; ++block) {
            const double seconds = cells.by_checkpoint[column][block];
            svg.cell({kCheckpoints + room * static_cast<double>(column), rows.y(block)},
                     {room - 1, rows.height - 1}, shade_of(seconds, cells.longest_checkpoint),
                     fmt::format("{}, {}: {}", name_of(shape, block), one.generation.substr(0, 40),
                                 human_duration(seconds)),
                     {"ranks.checkpoint", seconds});
        }
    }
}

// The root's phases that last as long as this one of a rank.
bool is_within(const std::string& roots, const std::string& of_rank) {
    if (of_rank == "converge") return roots == "targets" || roots == "converge";
    if (of_rank == "suspend" || of_rank == "save") return roots == "suspend" || roots == "save";
    return roots == of_rank;
}

// Lines of this phase on who waited where, the newest first, until one is enough.
template <class IsEnough>
void each_wait(const History& job, const std::string& of_rank, IsEnough is_enough) {
    for (auto life = job.lives.rbegin(); life != job.lives.rend(); ++life)
        for (auto one = life->checkpoints.rbegin(); one != life->checkpoints.rend(); ++one)
            for (const journal::PhaseTaken& phase : one->phases) {
                if (!is_within(phase.name, of_rank)) continue;
                for (size_t at = 0; at < phase.waits.size();) {
                    const size_t end = std::min(phase.waits.find('\n', at), phase.waits.size());
                    if (is_enough(phase.waits.substr(at, end - at))) return;
                    at = end + 1;
                }
            }
}

// In the newest line on this rank; else the newest one in which another rank waits for it.
std::string where_it_was(const History& job, int rank, const std::string& of_rank) {
    const std::string name = fmt::format("rank {}", rank);
    std::string own, others;
    each_wait(job, of_rank, [&](const std::string& line) {
        for (size_t at = line.find(name); at != std::string::npos; at = line.find(name, at + 1)) {
            const size_t end = at + name.size();
            if (end < line.size() && std::isdigit(static_cast<unsigned char>(line[end]))) continue;
            if (at == 0)
                own = line;
            else if (others.empty())
                others = line;
        }
        return !own.empty();
    });
    return own.empty() ? others : own;
}

}  // namespace

std::string ranks_map(const History& job) {
    const auto all = with_ranks(job);
    if (all.empty()) return {};
    const RanksTook& shape = all.back()->took;
    const Cells cells = cells_of(all);
    const Rows rows{shape.blocks > 16 ? 12.0 : kCell};
    const double bottom = rows.y(shape.blocks);
    draw::Svg svg(1100, bottom + 34, "seconds of ranks in each phase and checkpoint");
    for (size_t block = 0; block < shape.blocks; ++block)
        svg.text({4, rows.y(block) + rows.height / 2 + 4}, name_of(shape, block), "dim");
    draw_phases(svg, rows, cells, shape);
    draw_checkpoints(svg, rows, cells, all, shape);
    even_scale(svg, kCheckpoints, bottom + 12, cells.longest_checkpoint);
    return fmt::format(
               "<p class=\"dim\">Seconds that ranks took themselves, without what they waited for others, in "
               "{} good checkpoints{}.</p>\n",
               count("ranks.checkpoints", all.size()),
               static_cast<size_t>(shape.ranks) > shape.blocks
                   ? "; of each block of neighbours the slowest rank"
                   : "") +
           svg.inner();
}

std::string slowest_ranks(const History& job) {
    struct Row {
        size_t times = 0;
        double seconds = 0, mean = 0;
        std::string host;
    };
    std::map<std::pair<std::string, int>, Row> found;
    for (const CheckpointTaken* one : with_ranks(job))
        for (const RanksTook::Phase& phase : one->took.phases) {
            const size_t worst = phase.worst();
            Row& row = found[{phase.name, phase.slowest[worst]}];
            ++row.times;
            row.seconds += phase.seconds[worst];
            row.mean += phase.mean;
            row.host = phase.host;
        }
    std::vector<std::pair<std::pair<std::string, int>, Row>> rows(found.begin(), found.end());
    std::stable_sort(rows.begin(), rows.end(), [](const auto& one, const auto& other) {
        return one.second.seconds - one.second.mean > other.second.seconds - other.second.mean;
    });
    if (rows.size() > kMostSlowest) rows.resize(kMostSlowest);
    std::vector<std::vector<std::string>> cells;
    for (const auto& [who, row] : rows) {
        const auto& [phase, rank] = who;
        const std::string where = where_it_was(job, rank, phase);
        cells.push_back({count("slowest.rank", static_cast<size_t>(std::max(0, rank))),
                         draw::escaped(row.host, 60), draw::escaped(phase, 40),
                         count("slowest.times", row.times), seconds("slowest.seconds", row.seconds),
                         seconds("slowest.mean", row.mean), where.empty() ? "–" : draw::escaped(where, 160)});
    }
    return table({"slowest rank", "on", "phase", "how often", "took then", "all ranks then, on average",
                  "where it was, or who waited for it"},
                 cells);
}

}  // namespace fermata::report
