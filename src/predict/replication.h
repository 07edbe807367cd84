// This header says how long a job runs undisturbed when some of its ranks are played by two processes, and
// how often such a job saves itself (source.h has the papers). Seconds; no clock and no I/O.
#pragma once

#include <cstdint>

namespace fermata::predict {

// Processes of a job: `pairs` ranks with two, `single` ranks with one. One that fails is not replaced.
struct Replicas {
    uint64_t pairs = 0;
    uint64_t single = 0;

    // This share of so many ranks has two processes; rounded to whole ranks.
    static Replicas of(uint64_t ranks, double share);
    uint64_t ranks() const { return pairs + single; }
    uint64_t processes() const { return 2 * pairs + single; }
};

// Mean number of failures until both processes of one of so many pairs are gone, failures of dead ones
// counted, too.
double failures_to_interruption(uint64_t pairs);

// Mean time to interruption. `mtbf`: of one process. `shape`: of Weibull's distribution, 1 = exponential.
double mtti(const Replicas& replicas, double mtbf, double shape = 1);

// Interval and loss by it, when no dead copy is replaced before the job is restarted.
struct Interval {
    double seconds = 0;
    double loss = 0;
};
Interval not_replaced(double cost, double mtti);
// The same when each checkpoint also replaces dead copies; `mtbf`: of one process, which fails exponentially.
Interval replaced(double cost, uint64_t pairs, double mtbf);

}  // namespace fermata::predict
