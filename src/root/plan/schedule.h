// When the job saves itself without being asked: at intervals, and before its wall time is over.
#pragma once

#include <cstdint>
#include <optional>

#include "journal/forecast.h"
#include "root/plan/settings.h"

namespace fermata::root {

class Schedule {
  public:
    // `started`: when this life of the job began; the wall time began with the first one.
    explicit Schedule(const Settings& settings, int64_t started);

    // The next interval begins now.
    void plan(int64_t now);
    // Ends the schedule: nothing is due any more.
    void end() { next_due_ = 0; }
    // ms until the interval is over, at most `otherwise`.
    int rest(int64_t now, int otherwise) const;
    // True once, when it is over.
    bool take_interval(int64_t now);

    // The next thing that the wall time wants: a checkpoint to know how long one takes, or the last one.
    enum class Due { nothing, measure, stop };
    Due take_walltime(int64_t now);
    // The wall time ends then, after all: whoever has set it has moved it. ms; 0 = never.
    void ends_at(int64_t end) {
        end_ = end;
        stop_planned_ = false;
    }
    int64_t end_of_walltime() const { return end_; }
    // The last checkpoint has failed: once more, as long as there is time.
    void stop_failed(int64_t now);
    // ms; 0 = none.
    int64_t stop_due() const;

    // Changes the interval, from the next plan() on.
    void interval_is(double seconds) { interval_ = seconds; }
    void measured(const journal::Measured& one);
    const journal::Forecast& forecast() const { return forecast_; }
    // Seconds from the end of one checkpoint to the next; 0 = none.
    double interval() const;

  private:
    double interval_;
    double mtbf_;
    int64_t started_;       // ms
    int64_t end_;           // ms; of the wall time, 0 = no limit
    int64_t next_due_ = 0;  // ms; 0 = no interval
    journal::Forecast forecast_;
    int64_t measure_due_ = 0;  // ms; 0 = not any more
    int64_t not_before_ = 0;   // ms; the last one, again
    bool stop_planned_ = false;
};

}  // namespace fermata::root
