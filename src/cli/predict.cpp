// `fermata predict`: from its options, and the journal that they name, to a Question.
#include "cli/predict.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/rank.h"
#include "base/text.h"
#include "cli/history.h"

namespace fermata::cli {
namespace {

constexpr size_t kMostLevels = 8;

[[noreturn]] void wrong(const std::string& line) {
    throw Error(line + " (fermata predict --help)", ExitCode::usage);
}

double positive(const std::string& text, const char* option) {
    const double seconds = parse_duration(text, option);
    if (seconds <= 0) wrong(fmt::format("{} must be more than 0", option));
    return seconds;
}

double number(const std::string& text, const char* option, double least, double most, const char* example) {
    double value = 0;
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || at != text.data() + text.size() || !(value >= least && value <= most))
        wrong(fmt::format("{} takes a number from {} to {} ({}), not '{}'", option, least, most, example,
                          visible(text)));
    return value;
}

std::vector<std::string> split(const std::string& text, char between) {
    std::vector<std::string> all(1);
    for (char c : text)
        if (c == between)
            all.emplace_back();
        else
            all.back() += c;
    return all;
}

std::vector<std::string> words_in(const std::string& text) {
    std::vector<std::string> words = split(text, ' ');
    std::erase(words, "");
    return words;
}

// "memory 2s 5h, buddy 20s 2d, files 300s 20d"
std::vector<predict::LevelCost> parse_levels(const std::string& text) {
    std::vector<predict::LevelCost> levels;
    for (const std::string& entry : split(text, ',')) {
        const std::vector<std::string> words = words_in(entry);
        if (words.size() != 3)
            wrong(
                fmt::format("--levels takes NAME COST MTBF for each level, as \"memory 2s 5h, files 300s "
                            "20d\", not '{}'",
                            visible(entry)));
        levels.push_back(
            {words[0], positive(words[1], "--levels"), 1 / positive(words[2], "--levels"), false});
    }
    if (levels.size() > kMostLevels) wrong(fmt::format("--levels takes at most {} levels", kMostLevels));
    return levels;
}

// "25%,50%,100%"
std::vector<double> parse_shares(const std::string& text) {
    std::vector<double> shares;
    for (std::string one : split(text, ',')) {
        const bool percent = one.ends_with("%");
        if (percent) one.pop_back();
        shares.push_back(percent ? number(one, "--replicas", 0, 100, "50%") / 100
                                 : number(one, "--replicas", 0, 1, "50% or 0.5"));
    }
    if (shares.size() > 32) wrong("--replicas takes at most 32 shares");
    return shares;
}

Known given(double value, const char* option) { return {value, fmt::format("given by {}", option)}; }

const char* plural(size_t count) { return count == 1 ? "" : "s"; }

void read_words(const PredictWords& w, Question& q) {
    if (!w.checkpoint.empty()) q.checkpoint = given(positive(w.checkpoint, "--checkpoint"), "--checkpoint");
    if (!w.restart.empty()) q.recovery = given(parse_duration(w.restart, "--restart"), "--restart");
    if (!w.mtbf.empty()) q.mtbf = given(positive(w.mtbf, "--mtbf"), "--mtbf");
    if (!w.rank_mtbf.empty()) q.rank_mtbf = given(positive(w.rank_mtbf, "--rank-mtbf"), "--rank-mtbf");
    if (q.mtbf && q.rank_mtbf) wrong("--mtbf is of the job, --rank-mtbf of one process: name one of them");
    if (!w.interval.empty()) q.interval = given(positive(w.interval, "--interval"), "--interval");
    if (!w.work.empty()) q.work = positive(w.work, "--work");
    if (!w.ranks.empty()) {
        q.ranks = static_cast<uint64_t>(number(w.ranks, "-n", 1, Rank::kMost, "a number of ranks"));
        if (w.ranks.find_first_not_of("0123456789") != std::string::npos)
            wrong(fmt::format("-n takes a whole number of ranks, not '{}'", visible(w.ranks)));
    }
    if (!w.levels.empty()) q.levels = parse_levels(w.levels);
    if (!w.replicas.empty()) q.shares = parse_shares(w.replicas);
    if (!w.shape.empty()) q.shape = number(w.shape, "--shape", 0.1, 10, "0.7");
    if (!w.memory.empty()) q.memory = parse_bytes(w.memory, "--memory");
    if (!w.bandwidth.empty()) q.storage_bandwidth = parse_bytes(w.bandwidth, "--bandwidth", true);
    if (!w.storage.empty()) q.storage = parse_bytes(w.storage, "--storage");
    if (!w.disk.empty()) q.disk = parse_bytes(w.disk, "--disk");
    if ((q.storage > 0) != (q.disk > 0))
        wrong("--storage (of the machine) and --disk (the size of one) go together");
    if (q.memory > 0 && q.storage_bandwidth == 0)
        wrong("--memory needs --bandwidth: of the storage it goes to");
}

void read_journal(const journal::History& job, Question& q) {
    const journal::Measurements m = journal::measurements_of(job);
    auto take = [](std::optional<Known>& known, double value, size_t count, const char* of,
                   const char* what) {
        if (!known && count > 0)
            known = Known{value, fmt::format("measured: {} of {} {}{}", of, count, what, plural(count))};
    };
    take(q.checkpoint, m.cost, m.costs, "mean", "checkpoint");
    take(q.bytes, m.bytes, m.sizes, "mean", "checkpoint");
    take(q.bandwidth, m.bandwidth, m.bandwidths, "mean", "checkpoint");
    take(q.recovery, m.recovery, m.recoveries, "mean", "restart");
    take(q.interval, m.interval, m.intervals, "median", "interval");
    if (q.mtbf || q.rank_mtbf) return;
    const double running = job.running();
    if (m.failures == 0)
        // The rule of three: with 95 % there would have been one otherwise.
        return q.remarks.push_back(fmt::format(
            "no failure in {} of this job: with 95 % the time between failures is more than {}; --mtbf names "
            "one",
            human_duration(running), human_duration(running / 3)));
    q.mtbf = Known{m.mtbf, fmt::format("measured: {} failure{} in {}", m.failures, plural(m.failures),
                                       human_duration(running))};
    if (m.failures < 5)
        q.remarks.push_back(fmt::format(
            "{} failure{} are a rough measure of the time between failures: --mtbf names a better one",
            m.failures, plural(m.failures)));
}

// Measures what the options do not say.
void fill_in(const PredictWords& w, Question& q) {
    const bool numbers =
        q.checkpoint || q.mtbf || q.rank_mtbf || q.memory > 0 || !q.levels.empty() || !q.shares.empty();
    if (!w.ckpt_dir.empty() || !w.job.empty() || !numbers) {
        const journal::History job =
            history_in(w.ckpt_dir.empty() ? kCheckpointDirectory : w.ckpt_dir, w.job);
        if (q.ranks == 0 && job.ranks() > 0) q.ranks = static_cast<uint64_t>(job.ranks());
        read_journal(job, q);
    }
    if (!q.mtbf && q.rank_mtbf && q.ranks > 0)
        q.mtbf = Known{predict::mtbf_of_job(q.rank_mtbf->value, static_cast<double>(q.ranks)),
                       fmt::format("{} ranks, each {}", q.ranks, human_duration(q.rank_mtbf->value))};
    if (!q.rank_mtbf && q.mtbf && q.ranks > 0)
        q.rank_mtbf = Known{q.mtbf->value * static_cast<double>(q.ranks),
                            fmt::format("{} ranks together: {}", q.ranks, human_duration(q.mtbf->value))};
    if (q.checkpoint && !q.recovery) q.recovery = Known{q.checkpoint->value, "not known: as a checkpoint"};
    if (!q.shares.empty() && (q.ranks == 0 || !q.rank_mtbf))
        wrong("--replicas needs -n and --rank-mtbf (or --mtbf)");
}

}  // namespace

void add_predict(CLI::App* app, PredictWords& w) {
    auto add = [&](const char* names, std::string& text, const char* type, const char* help) {
        app->add_option(names, text, help)->type_name(type);
    };
    add("--ckpt-dir", w.ckpt_dir, "DIR",
        "measure in this directory's journal what is not given (or: predict DIR)");
    add("--job", w.job, "NAME", "which job of the journal (default: its newest)");
    add("--checkpoint", w.checkpoint, "T", "what the job loses by a checkpoint");
    add("--restart", w.restart, "T",
        "from a failure until the job computes again (default: as --checkpoint)");
    add("--mtbf", w.mtbf, "T", "mean time between failures of the job");
    add("--rank-mtbf", w.rank_mtbf, "T", "the same of one process, which fail independently; with -n");
    add("-n,--np", w.ranks, "N", "number of ranks");
    add("--interval", w.interval, "T", "also what this interval costs");
    add("--work", w.work, "T", "also how long this much work takes");
    add("--levels", w.levels, "LIST",
        "several levels, cheapest first: NAME COST MTBF of the failures that need it, as \"memory 2s 5h, "
        "files "
        "300s 20d\"");
    add("--replicas", w.replicas, "SHARES", "ranks with a second process: \"25%,50%,100%\"");
    add("--shape", w.shape, "K", "with --replicas: Weibull's shape of the failures (default 1: exponential)");
    add("--memory", w.memory, "SIZE", "memory that a dump writes: how long at best");
    add("--bandwidth", w.bandwidth, "RATE", "of the storage, as 500MB/s; with --disk: of one disk of it");
    add("--storage", w.storage, "SIZE", "with --disk SIZE: the storage in all, made of such disks");
    add("--disk", w.disk, "SIZE", "size of one disk");
    add("--plot", w.plot, "FILE.svg", "draw efficiency over --mtbf, and cost over the interval");
    app->add_flag("--json", w.json, "answer as JSON");
}

int predict(const PredictWords& w) {
    Question question;
    read_words(w, question);
    fill_in(w, question);
    if (!w.plot.empty()) {
        const auto job = question.job();
        if (!job) wrong("--plot needs --checkpoint and --mtbf, or a journal with both");
        write_page(w.plot,
                   plot_of(*job, question.interval ? std::optional(question.interval->value) : std::nullopt));
    }
    const auto answered = answer(question);
    if (w.json)
        std::printf("%s\n", answered.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    else
        std::fputs(text_of(answered).c_str(), stdout);
    return 0;
}

}  // namespace fermata::cli
