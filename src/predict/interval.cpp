#include "predict/interval.h"

#include <cmath>

#include "base/invariant.h"

namespace fermata::predict {
namespace {

// -(ln(1 - x) + x), exact also for small x, where both nearly cancel each other.
double missing_of(double x) {
    if (x < 1e-3) return x * x * (1.0 / 2 + x * (1.0 / 3 + x * (1.0 / 4 + x / 5)));
    return -(std::log1p(-x) + x);
}

}  // namespace

double young(double cost, double mtbf) { return std::sqrt(2 * cost * mtbf); }

double daly(double cost, double mtbf) {
    if (cost >= 2 * mtbf) return mtbf;
    const double x = cost / (2 * mtbf);
    return std::sqrt(2 * cost * mtbf) * (1 + std::sqrt(x) / 3 + x / 9) - cost;
}

double exact(double cost, double mtbf) {
    always(cost >= 0 && mtbf > 0, "an interval for failures that never come");
    double low = 0, high = 1;  // in units of mtbf; missing_of() grows from 0 to infinity between them
    for (int i = 0; i < 200; ++i) {
        const double middle = (low + high) / 2;
        (missing_of(middle) < cost / mtbf ? low : high) = middle;
    }
    return high * mtbf;
}

double stretch(const Job& job, double interval) {
    always(job.mtbf > 0 && interval > 0, "a job without an interval or a time between failures");
    return job.mtbf * std::exp(job.recovery / job.mtbf) * std::expm1((interval + job.cost) / job.mtbf) /
           interval;
}

double efficiency(const Job& job, double interval) { return 1 / stretch(job, interval); }

double loss(const Job& job, double interval) { return stretch(job, interval) - 1; }

double mtbf_of_job(double mtbf_of_process, double processes) { return mtbf_of_process / processes; }

}  // namespace fermata::predict
