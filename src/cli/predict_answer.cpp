// This file makes the answer of `fermata predict`, as JSON (docs/formats/predict.md), and its picture.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cli/predict.h"
#include "draw/chart.h"
#include "predict/advice.h"
#include "predict/fill_time.h"
#include "predict/replication.h"
#include "predict/source.h"

namespace fermata::cli {
namespace {

using nlohmann::ordered_json;

ordered_json with_source(ordered_json what, const predict::Source& source) {
    what["formula"] = source.formula;
    what["paper"] = source.paper;
    return what;
}

// No number of JSON is infinite.
ordered_json finite(double value) { return std::isfinite(value) ? ordered_json(value) : ordered_json(); }

ordered_json of_interval(const predict::Job& job, const std::string& name, double seconds) {
    return {{"name", name},
            {"seconds", seconds},
            {"loss", finite(predict::loss(job, seconds))},
            {"efficiency", predict::efficiency(job, seconds)}};
}

ordered_json intervals(const predict::Job& job, const Question& q) {
    const double daly = predict::daly(job.cost, job.mtbf);
    ordered_json all = {
        with_source(of_interval(job, predict::kYoung.name, predict::young(job.cost, job.mtbf)),
                    predict::kYoung),
        with_source(of_interval(job, predict::kDaly.name, daly), predict::kDaly),
        with_source(of_interval(job, predict::kExact.name, predict::exact(job.cost, job.mtbf)),
                    predict::kExact)};
    if (q.interval) {
        all.push_back(of_interval(job, "this one", q.interval->value));
        all.back()["from"] = q.interval->from;
    }
    return all;
}

// From a hundredth of the job's to a hundred times it, and at each the best interval.
ordered_json over_mtbf(const predict::Job& job) {
    ordered_json all = ordered_json::array();
    for (double factor : {0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0}) {
        const predict::Job one{job.cost, job.recovery, job.mtbf * factor};
        const double best = predict::daly(one.cost, one.mtbf);
        all.push_back(
            {{"mtbf", one.mtbf}, {"interval", best}, {"efficiency", predict::efficiency(one, best)}});
    }
    return all;
}

ordered_json levels_of(const Question& q) {
    const predict::Plan plan = predict::best_plan(q.levels);
    ordered_json all = {{"loss", plan.loss}, {"levels", ordered_json::array()}};
    size_t next = 0;
    for (const predict::LevelCost& level : q.levels) {
        const bool used = next < plan.levels.size() && plan.levels[next].name == level.name;
        ordered_json one = {{"name", level.name}, {"cost", level.cost}, {"used", used}};
        if (used) {
            one["mtbf"] = 1 / plan.levels[next].rate;
            one["best"] = plan.levels[next].best;
            one["period"] = plan.levels[next++].period;
        }
        all["levels"].push_back(std::move(one));
    }
    return with_source(std::move(all), predict::kLevels);
}

ordered_json dump_of(const Question& q) {
    ordered_json one = {{"bytes", q.memory}, {"bandwidth", q.storage_bandwidth}};
    double ideal = q.memory / q.storage_bandwidth;
    if (q.disk > 0) {
        const double fill = predict::fill_time(q.disk, q.storage_bandwidth);
        ideal = predict::ideal_dump(q.memory / q.storage, fill);
        one["ratio"] = q.memory / q.storage;
        one["fill_time"] = fill;
    }
    one["ideal"] = ideal;
    if (q.bandwidth) {
        const double expected = q.memory / q.bandwidth->value;
        one["measured_bandwidth"] = q.bandwidth->value;
        one["from"] = q.bandwidth->from;
        one["expected"] = expected;
        one["times_ideal"] = expected / ideal;
    } else {
        one["expected_least"] = ideal * predict::kMeasuredLeast;
        one["expected_most"] = ideal * predict::kMeasuredMost;
        one["from"] = "not measured here: runs of the paper took 8.5 to 9.7 times the ideal time";
    }
    return with_source(std::move(one), predict::kFillTime);
}

ordered_json replication_of(const Question& q) {
    ordered_json all = {{"ranks", q.ranks},
                        {"rank_mtbf", q.rank_mtbf->value},
                        {"shape", q.shape},
                        {"shares", ordered_json::array()}};
    const double without = predict::mtti(predict::Replicas::of(q.ranks, 0), q.rank_mtbf->value, q.shape);
    for (double share : q.shares) {
        const auto replicas = predict::Replicas::of(q.ranks, share);
        const double mtti = predict::mtti(replicas, q.rank_mtbf->value, q.shape);
        ordered_json one = {{"share", share},
                            {"pairs", replicas.pairs},
                            {"processes", replicas.processes()},
                            {"mtti", mtti},
                            {"relative", mtti / without}};
        if (replicas.single == 0 && q.shape == 1)
            one["failures"] = predict::failures_to_interruption(replicas.pairs);
        if (q.checkpoint) {
            const auto not_replaced = predict::not_replaced(q.checkpoint->value, mtti);
            one["not_replaced"] = with_source(
                {{"interval", not_replaced.seconds}, {"loss", not_replaced.loss}}, predict::kNotReplaced);
        }
        if (q.checkpoint && replicas.single == 0 && q.shape == 1) {
            const auto replaced = predict::replaced(q.checkpoint->value, replicas.pairs, q.rank_mtbf->value);
            one["replaced"] =
                with_source({{"interval", replaced.seconds}, {"loss", replaced.loss}}, predict::kReplaced);
        }
        all["shares"].push_back(with_source(std::move(one), replicas.single == 0 && q.shape == 1
                                                                ? predict::kFullReplication
                                                                : predict::kPartialReplication));
    }
    return all;
}

draw::Axis seconds_axis(const char* label, double low, double high) {
    return {label, low, high, true, [](double value) { return human_duration(value); }, {}};
}
draw::Axis share_axis(const char* label, double high) {
    return {label, 0, high, false, [](double value) { return predict::percent(value); }, {}};
}

}  // namespace

std::optional<predict::Job> Question::job() const {
    if (!checkpoint || !recovery || !mtbf) return {};
    return predict::Job{checkpoint->value, recovery->value, mtbf->value};
}

ordered_json answer(const Question& q) {
    ordered_json all = {{"numbers", ordered_json::object()}};
    auto number = [&](const char* name, const std::optional<Known>& known) {
        if (known) all["numbers"][name] = {{"value", known->value}, {"from", known->from}};
    };
    number("checkpoint", q.checkpoint);
    number("recovery", q.recovery);
    number("mtbf", q.mtbf);
    number("rank_mtbf", q.rank_mtbf);
    number("interval", q.interval);
    number("bytes", q.bytes);
    number("bandwidth", q.bandwidth);
    if (q.ranks > 0) all["numbers"]["ranks"] = q.ranks;
    if (const auto job = q.job()) {
        all["intervals"] = intervals(*job, q);
        if (q.work > 0) {
            const double best = predict::daly(job->cost, job->mtbf);
            all["expected"] =
                with_source({{"work", q.work}, {"seconds", finite(q.work * predict::stretch(*job, best))}},
                            predict::kExpected);
        }
        all["over_mtbf"] = over_mtbf(*job);
        all["advice"] = {predict::advice(*job, q.interval ? q.interval->value : 0)};
    }
    if (!q.levels.empty()) all["levels"] = levels_of(q);
    if (q.memory > 0) all["dump"] = dump_of(q);
    if (!q.shares.empty()) all["replication"] = replication_of(q);
    all["remarks"] = q.remarks;
    return all;
}

std::string plot_of(const predict::Job& job, std::optional<double> interval) {
    draw::Svg svg(980, 340, "efficiency over the time between failures, and cost over the interval");
    const double best = predict::daly(job.cost, job.mtbf);
    draw::Chart over{"Efficiency at the best interval (Daly 2006)",
                     seconds_axis("mean time between failures of the job", job.mtbf / 100, job.mtbf * 100),
                     share_axis("", 1),
                     {},
                     {},
                     {},
                     {}};
    draw::Series efficiency;
    for (int i = 0; i <= 160; ++i) {
        const predict::Job one{job.cost, job.recovery, job.mtbf * std::pow(10, -2 + i / 40.0)};
        efficiency.points.push_back({one.mtbf, predict::efficiency(one, predict::daly(one.cost, one.mtbf))});
    }
    over.curves.push_back(std::move(efficiency));
    const double at_best = predict::efficiency(job, best);
    over.marks.push_back({{job.mtbf, at_best},
                          fmt::format("{}: {}", human_duration(job.mtbf), predict::percent(at_best)),
                          "mark2"});
    over.draw(svg, 0, 0, 490, 340);

    const double least = predict::loss(job, best);
    double low = best / 10, high = best * 10;
    if (interval) low = std::min(low, *interval / 1.5), high = std::max(high, *interval * 1.5);
    draw::Chart cost{"Cost of an interval: time beyond the work (Daly 2006)",
                     seconds_axis("interval", low, high),
                     share_axis("", std::min(least * 4, 1e3)),
                     {},
                     {},
                     {},
                     {}};
    draw::Series losses;
    losses.kind = "two";
    for (int i = 0; i <= 160; ++i) {
        const double tau = low * std::pow(high / low, i / 160.0);
        losses.points.push_back({tau, predict::loss(job, tau)});
    }
    cost.curves.push_back(std::move(losses));
    cost.marks.push_back(
        {{best, least}, fmt::format("{}: {}", human_duration(best), predict::percent(least)), "mark"});
    if (interval)
        cost.marks.push_back({{*interval, predict::loss(job, *interval)},
                              fmt::format("this one, {}: {}", human_duration(*interval),
                                          predict::percent(predict::loss(job, *interval))),
                              "mark2",
                              true});
    cost.draw(svg, 490, 0, 490, 340);
    return svg.file();
}

}  // namespace fermata::cli
