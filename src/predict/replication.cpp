#include "predict/replication.h"

#include <cmath>

#include "base/invariant.h"

namespace fermata::predict {

Replicas Replicas::of(uint64_t ranks, double share) {
    always(share >= 0 && share <= 1, "more copies than ranks");
    const auto pairs = static_cast<uint64_t>(std::llround(share * static_cast<double>(ranks)));
    return {pairs, ranks - pairs};
}

double failures_to_interruption(uint64_t pairs) {
    const auto b = static_cast<double>(pairs);
    // 4^b / binom(2b, b), by logarithms: both are beyond all numbers from 512 pairs on.
    return 1 + std::exp(b * std::log(4) - std::lgamma(2 * b + 1) + 2 * std::lgamma(b + 1));
}

// By the trapezoidal rule over the logarithm of the time: there the integrand is smooth and falls off quickly
// on both sides, so that the rule's error falls exponentially with the step.
double mtti(const Replicas& replicas, double mtbf, double shape) {
    always(replicas.ranks() > 0 && mtbf > 0 && shape > 0, "a job without a process");
    const double scale = mtbf / std::tgamma(1 + 1 / shape);
    const auto pairs = static_cast<double>(replicas.pairs), single = static_cast<double>(replicas.single);
    // Below the one end nothing has failed, above the other everything has.
    constexpr double kStep = 1.0 / 256;
    const double low = -40 - std::log(pairs + single + 1) / shape, high = 8 / shape + 8;
    double sum = 0;
    for (double u = low; u < high; u += kStep) {
        const double hazard = std::exp(shape * u);
        // 1 - F^2 = (1 - F) (1 + F)
        const double alive = -(pairs + single) * hazard + pairs * std::log1p(-std::expm1(-hazard));
        sum += std::exp(u + alive);
    }
    return scale * sum * kStep;
}

Interval not_replaced(double cost, double mtti) {
    return {std::sqrt(2 * mtti * cost), std::sqrt(2 * cost / mtti)};
}

Interval replaced(double cost, uint64_t pairs, double mtbf) {
    always(pairs > 0 && mtbf > 0, "copies that nobody has");
    const double rate = 1 / mtbf;
    const auto b = static_cast<double>(pairs);
    return {std::cbrt(3 * cost / (4 * b * rate * rate)),
            std::pow(3 * cost * rate * std::sqrt(b) / std::sqrt(2), 2.0 / 3)};
}

}  // namespace fermata::predict
