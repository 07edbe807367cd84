#include "journal/forecast.h"

#include <algorithm>

#include "base/invariant.h"

namespace fermata::journal {
namespace {

// The launcher's end comes after the commit: Open MPI waits a second for its ranks
// (odls_base_sigkill_timeout), on a busy machine longer.
constexpr double kEnding = 2;
constexpr double kMostGrowth = 2;  // of the bytes, from one checkpoint to the next

}  // namespace

void Forecast::learn(const Measured& one) {
    always(one.until_saving >= 0 && one.writing >= 0, "a checkpoint that took less than no time");
    last_.push_back(one);
    if (last_.size() > kKept) last_.pop_front();
}

std::optional<double> Forecast::cost() const {
    if (last_.empty()) return {};
    return last_.back().cost();
}

// The worst of each part of late: an image of all memory comes now and then among increments, and ranks that
// compute for long come late to the safe state now and then.
std::optional<Forecast::Prediction> Forecast::next() const {
    if (last_.empty()) return {};
    Prediction next;
    double until_saving = 0;
    for (const Measured& one : last_) {
        until_saving = std::max(until_saving, one.until_saving);
        next.bytes = std::max(next.bytes, one.bytes);
    }
    // Bytes that have grown grow on; the newest is compared with the one before when both are of all memory.
    if (last_.size() > 1) {
        const double before = static_cast<double>(last_[last_.size() - 2].bytes);
        const double newest = static_cast<double>(last_.back().bytes);
        if (before > 0 && newest > before && 2 * newest > static_cast<double>(next.bytes))
            next.bytes = static_cast<uint64_t>(static_cast<double>(next.bytes) *
                                               std::min(newest / before, kMostGrowth));
    }
    // A small increment spends most of its time on other things than bytes: it says nothing of the bandwidth.
    double writing = 0;
    for (const Measured& one : last_) {
        writing = std::max(writing, one.writing);
        if (4 * one.bytes < next.bytes || one.writing <= 0) continue;
        const double bandwidth = static_cast<double>(one.bytes) / one.writing;
        if (next.bandwidth == 0 || bandwidth < next.bandwidth) next.bandwidth = bandwidth;
    }
    if (next.bandwidth > 0) writing = std::max(writing, static_cast<double>(next.bytes) / next.bandwidth);
    next.seconds = until_saving + writing;
    // Half as much again, and as much again as long as one alone was measured.
    always(next.seconds >= 0 && last_.size() <= kKept, "a forecast out of what was not measured");
    const auto count = static_cast<double>(last_.size());
    next.margin = next.seconds * (0.5 + 0.5 / count) + kEnding;
    return next;
}

}  // namespace fermata::journal
