// Finish knows at the root which ranks have come to MPI_Finalize, and when they may go on.
#pragma once

#include "replay/memory.h"
#include "replay/rules.h"
#include "replay/types.h"

namespace fermata::replay {

class Finish {
  public:
    explicit Finish(uint32_t ranks, Rules rules = {}) : arrived_(ranks, 0), missing_(ranks), rules_(rules) {}

    // Notes the rank, whoever plays it: an arrival stays valid when its leader dies. Again is no fault.
    void arrived(Rank rank) {
        if (!arrived_[rank.index()]) missing_--;
        arrived_[rank.index()] = 1;
    }
    // Once true there are no recoveries any more: a death only promotes.
    bool may_release(bool recovering) const {
        return missing_ == 0 && (!recovering || !rules_.have(Rule::release_or_recover));
    }

  private:
    Vec<uint8_t> arrived_;
    uint32_t missing_;
    Rules rules_;
};

}  // namespace fermata::replay
