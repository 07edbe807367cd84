#include "root/schedule.h"

#include <algorithm>
#include <cmath>

namespace fermata::root {

Schedule::Schedule(const Settings& settings, int64_t started)
    : interval_(settings.interval), mtbf_(settings.mtbf), walltime_(settings.walltime), started_(started) {}

// Young's and Daly's first-order optimum from the measured cost of the last checkpoint.
double Schedule::next_interval() const {
    if (interval_ >= 0) return interval_;
    if (last_cost_ <= 0) return std::min(60.0, mtbf_ / 100);  // the first one measures
    return std::max(std::sqrt(2 * last_cost_ * mtbf_) - last_cost_, last_cost_ * 2);
}

void Schedule::plan(int64_t now) {
    if (interval_ == 0) return;
    next_due_ = now + std::max<int64_t>(1, static_cast<int64_t>(next_interval() * 1000));
}

int Schedule::rest(int64_t now, int otherwise) const {
    return next_due_ ? static_cast<int>(std::clamp<int64_t>(next_due_ - now, 0, otherwise)) : otherwise;
}

bool Schedule::take_interval(int64_t now) {
    if (!next_due_ || now < next_due_) return false;
    next_due_ = 0;
    return true;
}

bool Schedule::take_walltime(int64_t now) {
    if (walltime_ <= 0 || stop_planned_ || now < stop_due()) return false;
    return stop_planned_ = true;
}

void Schedule::measured(double seconds, double cost) {
    last_seconds_ = seconds;
    last_cost_ = cost;
}

// When to begin the last checkpoint so that it is committed within the wall time: twice what the last one
// took, or a tenth of the time as long as none has been measured.
int64_t Schedule::stop_due() const {
    double t = walltime_;
    double margin = last_seconds_ > 0 ? 2 * last_seconds_ + 0.02 * t : 0.1 * t;
    return started_ + static_cast<int64_t>(1000 * std::max(t - margin, t / 2));
}

}  // namespace fermata::root
