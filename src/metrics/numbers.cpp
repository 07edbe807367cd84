#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "metrics/metrics.h"

namespace fermata::metrics {
namespace {

using journal::Event;
using journal::Kind;

constexpr double kBounds[] = {0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000};  // s
constexpr size_t kMostGenerations = 64, kMostNames = 32;
constexpr int kStopped = 85, kCancelled = 143;

// Numbers of a counter never fall.
double positive(const Event& event, const char* name) {
    return std::clamp(journal::number_in(event, name), 0.0, 1e18);
}
bool is_ok(const Event& event) { return event.fields.value("ok", nlohmann::json()) == true; }

std::string quoted(const std::string& text) {
    std::string safe = "\"";
    for (char c : visible(text)) safe += c == '\\' ? "\\\\" : c == '"' ? "\\\"" : std::string(1, c);
    return safe + "\"";
}

double in_seconds(int64_t ms) { return static_cast<double>(ms) / 1000; }

// Lines of the text format.
class Lines {
  public:
    explicit Lines(const std::string& job) : job_("fermata_job=" + quoted(job)) {}

    void head(const char* name, const char* type, const char* help) {
        name_ = name;
        text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
    }
    void value(double value, const std::string& labels = "", const char* suffix = "") {
        text_ +=
            fmt::format("{}{}{{{}{}{}}} {}\n", name_, suffix, job_, labels.empty() ? "" : ",", labels, value);
    }
    void one(const char* name, const char* type, const char* help, double only) {
        head(name, type, help);
        value(only);
    }
    std::string take() { return std::move(text_); }

  private:
    const std::string job_;
    std::string name_, text_;
};

}  // namespace

void Numbers::started(const Event& event) {
    ++lives_;
    if (first_start_ == 0) first_start_ = event.time_ms;
    if (job_.empty()) job_ = journal::text_in(event, "name");
    host_ = journal::text_in(event, "host");
    number_ = fmt::format("{:016x}", event.job);
    // Work of the life before that is done again.
    if (failed_ > 0 && ran_from_ > 0) {
        auto from = captured_.find(journal::text_in(event, "restored"));
        const int64_t since = from == captured_.end() ? ran_from_ : from->second;
        lost_ += std::max(0.0, in_seconds(failed_ - since));
    }
    failed_ = ran_from_ = 0;
    captured_.clear();
}

void Numbers::stopped_running(int64_t now) {
    if (running_since_ > 0) ran_ += std::max(0.0, in_seconds(now - running_since_));
    running_since_ = 0;
}

void Numbers::checkpoint(const Event& event) {
    if (!is_ok(event)) {
        ++bad_;
        return;
    }
    ++good_;
    newest_ = event.time_ms;
    last_bytes_ = positive(event, "bytes");
    last_bandwidth_ = positive(event, "bandwidth");
    const double seconds = positive(event, "seconds");
    bytes_ += last_bytes_;
    seconds_ += seconds;
    standing_ += positive(event, "standing");
    cost_ += positive(event, "cost");
    buckets_.resize(std::size(kBounds));
    for (size_t i = 0; i < std::size(kBounds); ++i) buckets_[i] += seconds <= kBounds[i];
    captured_[journal::text_in(event, "generation")] =
        event.time_ms - static_cast<int64_t>(positive(event, "behind") * 1000);
    if (captured_.size() > kMostGenerations) captured_.erase(captured_.begin());
}

void Numbers::copy(const Event& event) {
    const std::string level = journal::text_in(event, "level");
    if (!copies_.contains(level) && copies_.size() >= kMostNames) return;
    Copies& copies = copies_[level];
    ++(is_ok(event) ? copies.ok : copies.failed);
    copies.bytes += positive(event, "bytes");
    copies.seconds += positive(event, "seconds");
}

void Numbers::replica(const Event& event) {
    const std::string what = journal::text_in(event, "what");
    members_.made += what == "made";
    members_.ended += what == "ended" || what == "leads";
    members_.had = positive(event, "had");
    members_.wanted = positive(event, "wanted");
}

void Numbers::hear(const Event& event) {
    switch (event.kind) {
        case Kind::start:
            return started(event);
        case Kind::running:
            running_since_ = ran_from_ = event.time_ms;
            ranks_ = positive(event, "ranks");
            nodes_ = positive(event, "nodes");
            mpi_ = journal::text_in(event, "mpi");
            return;
        case Kind::phase:
            if (const std::string phase = journal::text_in(event, "phase");
                phases_.contains(phase) || phases_.size() < kMostNames)
                phases_[phase] += positive(event, "seconds");
            return;
        case Kind::checkpoint:
            return checkpoint(event);
        case Kind::copy:
            return copy(event);
        case Kind::loss:
            if (failed_ > 0) return;
            failed_ = event.time_ms;
            ++failures_;
            return;
        case Kind::masked:  // the job has not stopped
            ++members_.masked;
            members_.seconds += positive(event, "seconds");
            return;
        case Kind::replica:
            replica(event);
            return;
        case Kind::end: {
            stopped_running(event.time_ms);
            members_.had = 0;
            const auto code = static_cast<int>(std::clamp(journal::number_in(event, "code"), -1.0, 1000.0));
            if (failed_ == 0 && code != 0 && code != kStopped && code != kCancelled) {
                failed_ = event.time_ms;
                ++failures_;
            }
            return;
        }
        case Kind::restart:
            ++restarts_;
            return;
        case Kind::request:
        case Kind::injected:
        case Kind::log:
        case Kind::ranks:
        case Kind::renewal:
        case Kind::given_up:
            return;
    }
}

std::string Numbers::text(int64_t now) const {
    Lines out(job_);
    const double ran = ran_ + (running_since_ > 0 ? std::max(0.0, in_seconds(now - running_since_)) : 0);
    out.head("fermata_job_info", "gauge",
             "The job, by its number, its MPI library and the host of fermata run.");
    out.value(1, fmt::format("number={},mpi={},host={}", quoted(number_), quoted(mpi_), quoted(host_)));
    out.one("fermata_job_running", "gauge", "1 while all ranks of the job run.", running_since_ > 0);
    out.one("fermata_job_ranks", "gauge", "Ranks of the job.", ranks_);
    out.one("fermata_job_nodes", "gauge", "Nodes that the ranks run on.", nodes_);
    out.one("fermata_job_start_time_seconds", "gauge", "When the job was started, since 1970.",
            in_seconds(first_start_));
    out.one("fermata_job_running_seconds_total", "counter", "Time that all ranks ran.", ran);
    out.one("fermata_job_lives_total", "counter",
            "Lives of the job: its start and each that followed a failure.", static_cast<double>(lives_));
    out.one("fermata_job_failures_total", "counter", "Failures of the job.", static_cast<double>(failures_));
    out.one("fermata_job_restarts_total", "counter", "Restarts after a failure.",
            static_cast<double>(restarts_));
    out.one("fermata_job_lost_work_seconds_total", "counter",
            "Work that was lost by failures and done again.", lost_);
    out.head("fermata_checkpoints_total", "counter",
             "Checkpoints that were asked for, by what became of them.");
    out.value(static_cast<double>(good_), "result=\"ok\"");
    out.value(static_cast<double>(bad_), "result=\"failed\"");
    out.head("fermata_checkpoint_duration_seconds", "histogram",
             "Good checkpoints, from the request until the ranks go on and it is there.");
    for (size_t i = 0; i < std::size(kBounds); ++i)
        out.value(static_cast<double>(i < buckets_.size() ? buckets_[i] : 0),
                  fmt::format("le=\"{}\"", kBounds[i]), "_bucket");
    out.value(static_cast<double>(good_), "le=\"+Inf\"", "_bucket");
    out.value(seconds_, "", "_sum");
    out.value(static_cast<double>(good_), "", "_count");
    out.one("fermata_checkpoint_standing_seconds_total", "counter",
            "Time that the ranks stood still for checkpoints.", standing_);
    out.one("fermata_checkpoint_cost_seconds_total", "counter", "Time that the job lost by checkpoints.",
            cost_);
    out.one("fermata_checkpoint_bytes_total", "counter", "Bytes of good checkpoints.", bytes_);
    out.one("fermata_last_checkpoint_timestamp_seconds", "gauge",
            "When the newest generation was made, since 1970; 0: none.", in_seconds(newest_));
    out.one("fermata_last_checkpoint_bytes", "gauge", "Its size.", last_bytes_);
    out.one("fermata_last_checkpoint_bytes_per_second", "gauge", "Its bandwidth, from suspend to commit.",
            last_bandwidth_);
    out.head("fermata_phase_seconds_total", "counter", "Time in the phases of checkpoints.");
    for (const auto& [phase, seconds] : phases_) out.value(seconds, "phase=" + quoted(phase));
    out.head("fermata_copies_total", "counter",
             "Copies of generations to another level, by what became of them.");
    for (const auto& [level, copies] : copies_) {
        out.value(static_cast<double>(copies.ok), fmt::format("level={},result=\"ok\"", quoted(level)));
        out.value(static_cast<double>(copies.failed),
                  fmt::format("level={},result=\"failed\"", quoted(level)));
    }
    out.one("fermata_replicas", "gauge", "Ranks that have a copy now.", members_.had);
    out.one("fermata_replicas_wanted", "gauge", "Ranks that shall have one.", members_.wanted);
    out.one("fermata_replicas_made_total", "counter", "Copies of ranks that were made.",
            static_cast<double>(members_.made));
    out.one("fermata_replicas_ended_total", "counter", "Copies of ranks that follow no more.",
            static_cast<double>(members_.ended));
    out.one("fermata_masked_failures_total", "counter", "Deaths of ranks that their copies have masked.",
            static_cast<double>(members_.masked));
    out.one("fermata_masked_seconds_total", "counter", "Time from these deaths until all ranks went on.",
            members_.seconds);
    out.head("fermata_copy_bytes_total", "counter", "Bytes copied to another level.");
    for (const auto& [level, copies] : copies_) out.value(copies.bytes, "level=" + quoted(level));
    out.head("fermata_copy_seconds_total", "counter", "Time of copies to another level.");
    for (const auto& [level, copies] : copies_) out.value(copies.seconds, "level=" + quoted(level));
    return out.take();
}

}  // namespace fermata::metrics
