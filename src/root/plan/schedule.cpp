#include "root/plan/schedule.h"

#include <algorithm>

#include "predict/interval.h"

namespace fermata::root {
namespace {

// As long as nobody knows how long a checkpoint takes, one is taken when a quarter of the time has passed,
// and after ten minutes at the latest: early enough for one that takes much longer than anybody thinks.
constexpr int64_t kMeasureAtLatestMs = 600'000;

int64_t in_ms(double seconds) { return static_cast<int64_t>(seconds * 1000); }

}  // namespace

Schedule::Schedule(const Settings& settings, int64_t started)
    : interval_(settings.interval),
      mtbf_(settings.mtbf),
      started_(started),
      end_(settings.walltime > 0 ? (settings.began > 0 ? settings.began : started) + in_ms(settings.walltime)
                                 : 0) {
    if (settings.measured_before) forecast_.learn(*settings.measured_before);
    if (end_ > 0 && !forecast_.next())
        measure_due_ = started + std::min((end_ - started) / 4, kMeasureAtLatestMs);
}

double Schedule::interval() const {
    if (interval_ >= 0) return interval_;
    auto cost = forecast_.cost();
    if (!cost) return std::min(60.0, mtbf_ / 100);  // the first one measures
    return std::max(predict::daly(*cost, mtbf_), *cost * 2);
}

void Schedule::plan(int64_t now) {
    if (interval_ == 0) return;
    next_due_ = now + std::max<int64_t>(1, in_ms(interval()));
}

int Schedule::rest(int64_t now, int otherwise) const {
    return next_due_ ? static_cast<int>(std::clamp<int64_t>(next_due_ - now, 0, otherwise)) : otherwise;
}

bool Schedule::take_interval(int64_t now) {
    if (!next_due_ || now < next_due_) return false;
    next_due_ = 0;
    return true;
}

Schedule::Due Schedule::take_walltime(int64_t now) {
    if (end_ == 0 || stop_planned_) return Due::nothing;
    if (now >= std::max(stop_due(), not_before_)) {
        stop_planned_ = true;
        return Due::stop;
    }
    if (measure_due_ == 0 || now < measure_due_) return Due::nothing;
    // The checkpoint may be refused: then once more, later.
    const int64_t passed = now - started_;
    measure_due_ = forecast_.next() || now + passed > end_ ? 0 : now + passed;
    return forecast_.next() ? Due::nothing : Due::measure;
}

void Schedule::stop_failed(int64_t now) {
    stop_planned_ = false;
    not_before_ = now + std::clamp<int64_t>((end_ - now) / 4, 1000, 60'000);
}

void Schedule::measured(const journal::Measured& one) {
    forecast_.learn(one);
    measure_due_ = 0;
}

// So that the last one is committed, and the job ended, within the wall time. While nothing has been
// measured: a tenth of the time before. Never before half of the time has passed.
int64_t Schedule::stop_due() const {
    if (end_ == 0) return 0;
    const int64_t all = std::max<int64_t>(end_ - started_, 0);
    auto next = forecast_.next();
    const int64_t before = next ? in_ms(next->seconds + next->margin) : all / 10;
    return end_ - std::min(before, all / 2);
}

}  // namespace fermata::root
