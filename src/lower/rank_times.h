// How long this rank takes itself for each phase of one checkpoint (wire/times.h): what it waits for other
// ranks in a phase is not its own. No clock of its own: all times are nanoseconds that it is given.
#pragma once

#include <cstdint>
#include <vector>

#include "lower/agent_stages.h"

namespace fermata::lower {

class RankTimes {
  public:
    // Begin has come then. `anywhere`: no safe state is looked for.
    RankTimes(uint64_t asked, bool anywhere) : asked_(asked), freezes_(anywhere ? asked : 0) {}

    // The agent enters this stage.
    void enter(Stage stage, uint64_t now);
    // The clock of this rank has said something. The first is its report, the last that the rank is safe.
    void said(uint64_t now);
    // The clock has heard something. The first after the report are the targets, for which all ranks' reports
    // are needed: it has waited for them.
    void heard(uint64_t now);
    // Once in a while: does the program compute, or does it wait in MPI for other ranks? Counts until the
    // clock says something the last time.
    void looked(bool computes, uint64_t now);
    // A round of the drain took so long here.
    void drained(uint64_t took) { drain_ += took; }
    // For wire::Saved, with how long this rank was being captured and wrote.
    std::vector<uint64_t> in_us(uint64_t suspend, uint64_t save) const;

  private:
    uint64_t asked_;
    uint64_t freezes_;                     // since then; 0: not yet
    uint64_t reported_ = 0, targets_ = 0;  // when; 0: not yet
    uint64_t looked_ = 0, computed_ = 0;   // when; how long, of the time since the targets
    uint64_t converge_ = 0, freeze_ = 0, drain_ = 0;
};

}  // namespace fermata::lower
