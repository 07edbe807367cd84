#include "journal/history.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace fermata::journal {
namespace {

constexpr int kStopped = 85, kCancelled = 143;
constexpr size_t kMostPhases = 32;

// Numbers of a journal may be anything.
double bounded(const Event& event, const char* name, double most = 1e15) {
    return std::clamp(number_in(event, name), 0.0, most);
}
int whole(const Event& event, const char* name, int otherwise = 0) {
    return static_cast<int>(std::clamp(number_in(event, name, otherwise), -1.0, 1e9));
}
bool is_ok(const Event& event) { return event.fields.value("ok", nlohmann::json()) == true; }

void begin_life(History& history, const Event& event) {
    Life life;
    life.start = event.time_ms;
    life.name = text_in(event, "name");
    life.host = text_in(event, "host");
    life.restored = text_in(event, "restored");
    life.ranks = whole(event, "ranks");
    history.lives.push_back(std::move(life));
    history.directory = text_in(event, "directory");
    auto words = event.fields.find("command");
    if (words == event.fields.end() || !words->is_array()) return;
    history.command.clear();
    for (const nlohmann::json& word : *words)
        if (word.is_string()) history.command.push_back(word.get<std::string>());
}

CheckpointTaken checkpoint_of(const Event& event, std::vector<PhaseTaken> phases) {
    CheckpointTaken one;
    one.generation = text_in(event, "generation");
    one.level = text_in(event, "level");
    one.origin = text_in(event, "origin");
    one.line = text_in(event, "line");
    one.ok = is_ok(event);
    one.end = event.time_ms;
    one.bytes = bounded(event, "bytes", 1e18);
    one.seconds = bounded(event, "seconds");
    one.standing = bounded(event, "standing");
    one.behind = bounded(event, "behind");
    one.bandwidth = bounded(event, "bandwidth", 1e18);
    one.cost = event.fields.contains("cost") ? bounded(event, "cost") : one.standing;
    one.phases = std::move(phases);
    return one;
}

Masked masked_of(const Event& event) {
    Masked one{event.time_ms, bounded(event, "seconds", 1e9), text_in(event, "line"), {}};
    auto phases = event.fields.find("phases");
    if (phases == event.fields.end() || !phases->is_object()) return one;
    for (auto& [name, seconds] : phases->items())
        if (seconds.is_number() && one.phases.size() < kMostPhases)
            one.phases.emplace_back(name, std::clamp(seconds.get<double>(), 0.0, 1e9));
    return one;
}

void take(History& history, const Event& event) {
    if (event.kind == Kind::start) return begin_life(history, event);
    if (event.kind == Kind::given_up) history.given_up = text_in(event, "why");
    if (history.lives.empty()) {  // the journal was rotated: the life began before its first line
        history.lives.emplace_back();
        history.lives.back().start = history.lives.back().running = event.time_ms;
    }
    Life& life = history.lives.back();
    switch (event.kind) {
        case Kind::running:
            life.running = event.time_ms;
            life.ranks = whole(event, "ranks");
            life.nodes = whole(event, "nodes");
            life.mpi = text_in(event, "mpi");
            break;
        case Kind::request:
            life.phases.clear();
            life.took = {};
            break;
        case Kind::ranks:
            life.took = ranks_took(event);
            break;
        case Kind::masked:  // nothing was lost
            life.masked.push_back(masked_of(event));
            break;
        case Kind::phase:
            life.phases.push_back({text_in(event, "phase"), text_in(event, "generation"),
                                   text_in(event, "last"), text_in(event, "waits"), event.time_ms,
                                   bounded(event, "seconds")});
            break;
        case Kind::checkpoint:
            life.checkpoints.push_back(checkpoint_of(event, std::exchange(life.phases, {})));
            life.checkpoints.back().took = std::exchange(life.took, {});
            break;
        case Kind::copy:
            life.copies.push_back({text_in(event, "generation"), text_in(event, "level"),
                                   text_in(event, "why"), is_ok(event), event.time_ms,
                                   bounded(event, "bytes", 1e18), bounded(event, "seconds")});
            break;
        case Kind::loss:
            life.losses.push_back(
                {event.time_ms, text_in(event, "why"), text_in(event, "host"), whole(event, "rank", -1)});
            break;
        case Kind::end:
            life.ended = true;
            life.code = whole(event, "code");
            life.why = text_in(event, "why");
            life.newest = text_in(event, "newest");
            break;
        case Kind::restart:
            life.pause = bounded(event, "pause");
            return;  // its life is over
        case Kind::start:
        case Kind::renewal:
        case Kind::replica:
        case Kind::injected:
        case Kind::given_up:
        case Kind::log:
            break;
    }
    if (event.kind != Kind::given_up) life.end = std::max(life.end, event.time_ms);
}

}  // namespace

std::optional<Failure> Life::failure() const {
    if (!losses.empty()) return losses.front();
    if (!ended || code == 0 || code == kStopped || code == kCancelled) return {};
    return Failure{end, why, host, -1};
}

const std::string& History::name() const {
    static const std::string none;
    for (auto life = lives.rbegin(); life != lives.rend(); ++life)
        if (!life->name.empty()) return life->name;
    return none;
}

int History::ranks() const {
    for (auto life = lives.rbegin(); life != lives.rend(); ++life)
        if (life->ranks > 0) return life->ranks;
    return 0;
}

double History::running() const {
    double sum = 0;
    for (const Life& life : lives) sum += life.seconds();
    return sum;
}

size_t History::failures() const {
    return static_cast<size_t>(std::count_if(lives.begin(), lives.end(), [](const Life& life) {
        return life.running != 0 && life.failure().has_value();
    }));
}

size_t History::masked() const {
    size_t all = 0;
    for (const Life& life : lives) all += life.masked.size();
    return all;
}

double History::masking() const {
    double sum = 0;
    for (const Life& life : lives)
        for (const Masked& one : life.masked) sum += one.seconds;
    return sum;
}

std::vector<double> History::recoveries() const {
    std::vector<double> all;
    for (size_t i = 0; i + 1 < lives.size(); ++i) {
        const auto failure = lives[i].failure();
        if (!failure || lives[i + 1].running == 0) continue;
        all.push_back(static_cast<double>(std::max<int64_t>(0, lives[i + 1].running - failure->time)) / 1000);
    }
    return all;
}

double History::lost_after(size_t at) const {
    if (at >= lives.size()) return 0;
    const Life& life = lives[at];
    const auto failure = life.failure();
    if (!failure || life.running == 0) return 0;
    int64_t since = life.running;  // nothing of it is left
    if (at + 1 < lives.size() && !lives[at + 1].restored.empty()) {
        for (const CheckpointTaken& one : life.checkpoints)
            if (one.ok && one.generation == lives[at + 1].restored) since = one.captured();
    } else if (at + 1 == lives.size()) {  // nobody has gone on yet: from the newest one, then
        for (const CheckpointTaken& one : life.checkpoints)
            if (one.ok) since = one.captured();
    }
    return static_cast<double>(std::max<int64_t>(0, failure->time - since)) / 1000;
}

std::vector<const CheckpointTaken*> History::good() const {
    std::vector<const CheckpointTaken*> all;
    for (const Life& life : lives)
        for (const CheckpointTaken& one : life.checkpoints)
            if (one.ok) all.push_back(&one);
    return all;
}

namespace {

double mean(const std::vector<double>& all) {
    double sum = 0;
    for (double one : all) sum += one;
    return all.empty() ? 0 : sum / static_cast<double>(all.size());
}

// Seconds from the end of a good checkpoint to the beginning of the next one in the same life.
std::vector<double> intervals_of(const History& job) {
    std::vector<double> all;
    for (const Life& life : job.lives) {
        const CheckpointTaken* before = nullptr;
        for (const CheckpointTaken& one : life.checkpoints) {
            if (!one.ok) continue;
            const double seconds =
                before ? static_cast<double>(one.end - before->end) / 1000 - one.seconds : 0;
            if (seconds > 0) all.push_back(seconds);
            before = &one;
        }
    }
    return all;
}

}  // namespace

Measurements measurements_of(const History& job) {
    std::vector<double> costs, sizes, bandwidths, recoveries = job.recoveries(),
                                                  intervals = intervals_of(job);
    for (const CheckpointTaken* one : job.good()) {
        if (one->cost > 0) costs.push_back(one->cost);
        if (one->bytes > 0) sizes.push_back(one->bytes);
        if (one->bandwidth > 0) bandwidths.push_back(one->bandwidth);
    }
    Measurements all;
    all.cost = mean(costs), all.costs = costs.size();
    all.bytes = mean(sizes), all.sizes = sizes.size();
    all.bandwidth = mean(bandwidths), all.bandwidths = bandwidths.size();
    all.recovery = mean(recoveries), all.recoveries = recoveries.size();
    all.failures = job.failures();
    if (all.failures > 0) all.mtbf = job.running() / static_cast<double>(all.failures);
    std::sort(intervals.begin(), intervals.end());
    if (!intervals.empty()) all.interval = intervals[intervals.size() / 2];
    all.intervals = intervals.size();
    return all;
}

std::vector<History> histories(const std::vector<Event>& events) {
    std::vector<History> all;
    std::map<uint64_t, size_t> places;
    for (const Event& event : events) {
        auto [place, fresh] = places.try_emplace(event.job, all.size());
        if (fresh) {
            all.emplace_back();
            all.back().job = event.job;
            all.back().begun = event.kind == Kind::start && text_in(event, "restored").empty();
        }
        ++all[place->second].events;
        take(all[place->second], event);
    }
    return all;
}

}  // namespace fermata::journal
