#include "lower/rank_times.h"

#include <algorithm>
#include <utility>

#include "wire/times.h"

namespace fermata::lower {

void RankTimes::enter(Stage stage, uint64_t now) {
    if (stage == Stage::calming && freezes_ == 0) freezes_ = now;
    if (stage == Stage::frozen && freeze_ == 0) freeze_ = now - freezes_;
}

void RankTimes::said(uint64_t now) {
    if (freezes_ != 0) return;
    if (targets_ == 0) reported_ = now;
    converge_ = reported_ - asked_ + computed_;
}

void RankTimes::heard(uint64_t now) {
    if (reported_ != 0 && targets_ == 0) targets_ = looked_ = now;
}

void RankTimes::looked(bool computes, uint64_t now) {
    if (targets_ == 0) return;
    const uint64_t since = std::exchange(looked_, now);
    if (computes) computed_ += now - since;
}

std::vector<uint64_t> RankTimes::in_us(uint64_t suspend, uint64_t save) const {
    std::vector<uint64_t> all{converge_, freeze_, drain_, suspend, save};
    for (uint64_t& one : all) one = std::min(one / 1000, wire::kMostPhaseUs);
    return all;
}

}  // namespace fermata::lower
