// When the job saves itself without being asked: at intervals, and before its wall time is over.
#pragma once

#include <cstdint>

#include "root/settings.h"

namespace fermata::root {

class Schedule {
  public:
    explicit Schedule(const Settings& settings, int64_t started);

    // The next interval begins now.
    void plan(int64_t now);
    // Not any more.
    void end() { next_due_ = 0; }
    // ms until the interval is over, at most `otherwise`.
    int rest(int64_t now, int otherwise) const;
    // True once, when it is over.
    bool take_interval(int64_t now);
    // True once, when the last checkpoint has to begin.
    bool take_walltime(int64_t now);
    // Of a checkpoint: seconds from its request to its end, and of those the job stood still.
    void measured(double seconds, double cost);

  private:
    double next_interval() const;
    int64_t stop_due() const;

    const double interval_, mtbf_, walltime_;
    const int64_t started_;    // ms
    int64_t next_due_ = 0;     // ms; 0 = no interval
    double last_cost_ = 0;     // seconds the job stood still
    double last_seconds_ = 0;  // request .. resume of the newest good one
    bool stop_planned_ = false;
};

}  // namespace fermata::root
