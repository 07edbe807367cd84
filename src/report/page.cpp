#include "report/page.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "draw/svg.h"
#include "predict/advice.h"
#include "predict/source.h"
#include "report/html.h"
#include "report/phases.h"
#include "report/ranks.h"
#include "report/timeline.h"

namespace fermata::report {
namespace {

using journal::History;
using journal::Life;

constexpr size_t kMostRows = 100;  // of a table: the newest

constexpr const char* kPageStyle = R"(
body { font: 14px/1.45 system-ui, "DejaVu Sans", sans-serif; color: #222; max-width: 1100px; margin: 24px auto; padding: 0 16px; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 28px 0 8px; border-bottom: 1px solid #ddd; }
p { margin: 6px 0; } .dim { color: #666; } code { font-family: "DejaVu Sans Mono", monospace; word-break: break-all; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(250px, 1fr)); gap: 6px 20px; margin: 12px 0; }
dl div { border-left: 3px solid #7da7d9; padding-left: 8px; } dt { color: #666; font-size: 12px; } dd { margin: 0; font-size: 16px; }
table { border-collapse: collapse; font-size: 13px; margin: 8px 0; } th { text-align: left; color: #555; font-weight: 600; }
th, td { padding: 3px 14px 3px 0; border-bottom: 1px solid #eee; vertical-align: top; overflow-wrap: anywhere; }
tr { break-inside: avoid; } svg { max-width: 100%; height: auto; display: block; break-inside: avoid; }
.advice { background: #f3f7ec; border-left: 4px solid #7fb77e; padding: 8px 12px; }
@media print { body { margin: 0; max-width: none; font-size: 11px; } h2 { break-after: avoid; } * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
@page { size: A4 landscape; margin: 12mm; }
)";

std::string fact(const char* name, const std::string& value) {
    return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, value);
}

std::string head(const History& job) {
    std::string words;
    for (const std::string& word : job.command) words += (words.empty() ? "" : " ") + word;
    const Life& newest = job.lives.back();
    std::string text =
        fmt::format("<h1>{}</h1>\n", draw::escaped(job.name().empty() ? "job" : job.name(), 200));
    if (!words.empty()) text += fmt::format("<p><code>{}</code></p>\n", draw::escaped(words, 600));
    text += fmt::format("<p class=\"dim\">{} in {}; {} to {}</p>\n",
                        fmt::format("job <code>{:016x}</code>", job.job), draw::escaped(job.directory, 300),
                        moment("begin", job.lives.front().start), moment("end", newest.end));
    if (!job.begun)
        text +=
            "<p>The journal does not hold the beginning of this job: it was continued from a generation, or "
            "older events "
            "were rotated away.</p>\n";
    return text;
}

std::string summary(const History& job, const journal::Measurements& m) {
    const auto good = job.good();
    size_t all = 0;
    double lost = 0, written = 0, cost = 0;
    for (size_t i = 0; i < job.lives.size(); ++i) {
        all += job.lives[i].checkpoints.size();
        lost += job.lost_after(i);
    }
    for (const journal::CheckpointTaken* one : good) written += one->bytes, cost += one->cost;
    const double wall = static_cast<double>(job.lives.back().end - job.lives.front().start) / 1000;
    const double useful = std::max(0.0, job.running() - lost - cost);
    std::string text = "<dl>\n";
    text += fact("ranks", count("ranks", static_cast<size_t>(std::max(0, job.ranks()))));
    text += fact("lives", count("lives", job.lives.size()));
    text += fact("failures", count("failures", m.failures));
    if (job.masked() > 0) {
        text += fact("masked by copies", count("masked", job.masked()));
        text += fact("time until all went on then", seconds("masking", job.masking()));
    }
    text += fact("time in all", seconds("wall", wall));
    text += fact("ranks ran", seconds("running", job.running()));
    text += fact("work lost by failures", seconds("lost", lost));
    text += fact("lost by checkpoints", seconds("cost", cost));
    if (wall > 0)
        text += fact("work, of the time in all",
                     number("efficiency", useful / wall, predict::percent(useful / wall)));
    text += fact("good checkpoints", count("good", good.size()));
    text += fact("not made", count("not_made", all - good.size()));
    text += fact("written", bytes("written", written));
    if (m.costs > 0) text += fact("a checkpoint costs (mean)", seconds("mean_cost", m.cost));
    if (m.bandwidths > 0) text += fact("bandwidth (mean)", bandwidth("mean_bandwidth", m.bandwidth));
    if (m.recoveries > 0)
        text += fact("failure until it runs again (mean)", seconds("mean_recovery", m.recovery));
    if (m.intervals > 0) text += fact("between checkpoints (median)", seconds("interval", m.interval));
    return text + "</dl>\n";
}

std::string advice(const History& job, const journal::Measurements& m) {
    std::string text = "<div class=\"advice\">\n";
    if (m.costs == 0) {
        text += "<p>No checkpoint was measured: nothing to advise.</p>\n";
    } else if (m.failures == 0) {
        text += fmt::format(
            "<p>No failure in {}: with 95 % the time between failures is more than {}. <code>fermata predict "
            "--mtbf T</code> says what an interval costs for one that you know.</p>\n",
            seconds("running", job.running()), seconds("least_mtbf", job.running() / 3));
    } else {
        const predict::Job measured{m.cost, m.recoveries > 0 ? m.recovery : m.cost, m.mtbf};
        const double best = predict::daly(measured.cost, measured.mtbf),
                     least = predict::loss(measured, best);
        text += fmt::format("<p>Measured: a failure every {}, a checkpoint costs {}. ",
                            seconds("mtbf", m.mtbf), seconds("mean_cost", m.cost));
        bool as_good = false;  // nobody changes an interval for less than a thousandth
        if (m.intervals > 0) {
            const double now = predict::loss(measured, m.interval);
            as_good = now - least < 0.001;
            text += fmt::format("Every {} costs {}, every ", seconds("interval", m.interval),
                                number("interval_loss", now, predict::percent(now)));
        } else {
            text += "Every ";
        }
        text += fmt::format("{} {}{}{}: <code>--interval auto --mtbf {:.0f}s</code>.</p>\n",
                            seconds("best_interval", best), m.intervals > 0 ? "" : "costs ",
                            number("best_loss", least, predict::percent(least)),
                            as_good ? " (no interval costs noticeably less)" : "", m.mtbf);
        text += fmt::format("<p class=\"dim\">Interval: {}. Cost: {}.{}</p>\n", predict::kDaly.paper,
                            predict::kExpected.paper,
                            m.failures < 5 ? " So few failures are a rough measure." : "");
    }
    return text + "</div>\n";
}

// The rows of the newest, and a line for those that are left out.
std::string newest_rows(const std::vector<std::string>& titles, std::vector<std::vector<std::string>> rows,
                        const char* name, size_t all) {
    std::string text;
    if (rows.size() < all)
        text = fmt::format("<p class=\"dim\">The newest {} of {}.</p>\n",
                           count(fmt::format("{}.shown", name), rows.size()),
                           count(fmt::format("{}.all", name), all));
    return text + table(titles, rows);
}

std::string lives(const History& job) {
    std::vector<std::vector<std::string>> rows;
    const size_t first = job.lives.size() - std::min(job.lives.size(), kMostRows);
    for (size_t i = first; i < job.lives.size(); ++i) {
        const Life& life = job.lives[i];
        const auto failure = life.failure();
        std::string end = failure                         ? (failure->why.empty() ? "failure" : failure->why)
                          : life.ended && life.code == 85 ? "checkpointed and stopped"
                          : life.ended                    ? (life.why.empty() ? "done" : life.why)
                                                          : "its end is not in the journal";
        rows.push_back(
            {count("life", i + 1), moment("life.start", life.start),
             draw::escaped(life.restored.empty() ? "–" : life.restored, 40),
             draw::escaped(life.mpi.empty() ? "–" : life.mpi, 40),
             count("life.nodes", static_cast<size_t>(std::max(0, life.nodes))),
             life.running
                 ? seconds("life.ready", std::max(0.0, static_cast<double>(life.running - life.start) / 1000))
                 : "never",
             seconds("life.ran", life.seconds()), count("life.checkpoints", life.checkpoints.size()),
             job.lost_after(i) > 0 ? seconds("life.lost", job.lost_after(i)) : "–",
             life.ended ? count("life.code", static_cast<size_t>(std::max(0, life.code))) : "–",
             draw::escaped(end, 200)});
    }
    return newest_rows({"life", "began", "from", "MPI", "nodes", "ready after", "ran", "checkpoints",
                        "lost work", "code", "how it ended"},
                       std::move(rows), "lives", job.lives.size());
}

std::string masked(const History& job) {
    std::vector<std::vector<std::string>> rows;
    for (const Life& life : job.lives)
        for (const journal::Masked& one : life.masked) {
            std::string phases;
            for (auto& [name, took] : one.phases)
                phases += fmt::format("{}{} {:.3f} s", phases.empty() ? "" : ", ", name, took);
            rows.push_back({moment("masked.death", one.death()), draw::escaped(one.line, 200),
                            seconds("masked.seconds", one.seconds), draw::escaped(phases, 300)});
        }
    const size_t all = rows.size();
    if (all > kMostRows) rows.erase(rows.begin(), rows.end() - static_cast<ptrdiff_t>(kMostRows));
    return newest_rows({"when", "what", "until all went on", "of that"}, std::move(rows), "masked", all);
}

std::string generations(const History& job) {
    // Copies by generation: "buddy, files"
    std::map<std::string, std::set<std::string>> levels;
    std::vector<const journal::CheckpointTaken*> all;
    for (const Life& life : job.lives) {
        for (const journal::CopyMade& copy : life.copies)
            if (copy.ok) levels[copy.generation].insert(copy.level);
        for (const journal::CheckpointTaken& one : life.checkpoints) all.push_back(&one);
    }
    std::vector<std::vector<std::string>> rows;
    for (size_t i = all.size() - std::min(all.size(), kMostRows); i < all.size(); ++i) {
        const journal::CheckpointTaken& one = *all[i];
        if (!one.ok) {
            rows.push_back({moment("checkpoint.end", one.end), "not made", "–", draw::escaped(one.origin, 40),
                            "–", "–", "–", "–", "–", draw::escaped(one.line, 200)});
            continue;
        }
        std::string at = one.level;
        for (const std::string& level : levels[one.generation]) at += ", " + level;
        rows.push_back({moment("checkpoint.end", one.end), draw::escaped(one.generation, 40),
                        draw::escaped(at, 80), draw::escaped(one.origin, 40),
                        bytes("checkpoint.bytes", one.bytes), seconds("checkpoint.seconds", one.seconds),
                        seconds("checkpoint.standing", one.standing), seconds("checkpoint.cost", one.cost),
                        bandwidth("checkpoint.bandwidth", one.bandwidth), ""});
    }
    return newest_rows({"when", "generation", "levels", "asked by", "size", "took", "stood still", "cost",
                        "bandwidth", "why not"},
                       std::move(rows), "generations", all.size());
}

}  // namespace

std::string page(const History& job, double floor) {
    const journal::Measurements m = journal::measurements_of(job);
    std::string text =
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
        "'unsafe-inline'\">\n";
    text += fmt::format("<title>{}: report</title>\n<style>{}{}</style>\n</head>\n<body>\n",
                        draw::escaped(job.name(), 200), kPageStyle, draw::kStyle);
    text += head(job) + summary(job, m);
    text += "<h2>Advice</h2>\n" + advice(job, m);
    text += "<h2>Timeline</h2>\n" + timeline(job);
    text += "<h2>Lives</h2>\n" + lives(job);
    if (!job.given_up.empty()) text += fmt::format("<p>Given up: {}</p>\n", draw::escaped(job.given_up, 300));
    if (job.masked() > 0) text += "<h2>Failures that copies of ranks masked</h2>\n" + masked(job);
    text += "<h2>Generations and levels</h2>\n" + generations(job);
    text += "<h2>Phases of checkpoints</h2>\n" + heat_map(job);
    text += "<h2>Bandwidth</h2>\n" + bandwidths(job, floor);
    if (const std::string nodes = nodes_map(job); !nodes.empty())
        text += "<h2>Nodes that came last in a phase</h2>\n" + nodes;
    if (const std::string ranks = ranks_map(job); !ranks.empty())
        text += "<h2>Ranks in the phases of checkpoints</h2>\n" + ranks + slowest_ranks(job);
    text += "<h2>Who waits for whom</h2>\n" + waits(job);
    return text + "</body>\n</html>\n";
}

}  // namespace fermata::report
