// Forecast says what a checkpoint will cost, from those that were measured: how often to take one, and how
// long before the end of the wall time the last one has to begin. No clock and no I/O.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace fermata::journal {

// A good checkpoint, as it was measured. Seconds.
struct Measured {
    double until_saving = 0;  // request until the ranks begin to write
    double writing = 0;       // from there until the commit
    double standing = 0;      // of all that, the job stood still
    double behind = 0;        // of the writing, the job went on: a forked writer
    uint64_t bytes = 0;

    double seconds() const { return until_saving + writing; }
    // Seconds that the job loses by it. A writer beside the ranks takes memory bandwidth, and a core where no
    // one is idle: nobody can measure from here by how much it slows them down.
    double cost() const { return standing + kSlowDown * behind; }
    static constexpr double kSlowDown = 0.1;
};

class Forecast {
  public:
    void learn(const Measured& one);

    struct Prediction {
        double seconds = 0;    // request to commit
        double margin = 0;     // besides, for what was not foreseen
        uint64_t bytes = 0;    // the largest of late
        double bandwidth = 0;  // bytes a second, the least of late
    };
    // Predicts the next one that holds all; none: nothing was measured.
    std::optional<Prediction> next() const;
    // Cost of the newest one; none: nothing was measured.
    std::optional<double> cost() const;

  private:
    static constexpr size_t kKept = 16;
    std::deque<Measured> last_;
};

}  // namespace fermata::journal
