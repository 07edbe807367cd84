// Numbers gives each order to the nodes of a job its number: one above all before, so that an answer belongs
// to one order, and a node knows an order that is said again.
#pragma once

#include <cstdint>

#include "base/invariant.h"

namespace fermata::keeping {

class Numbers {
  public:
    uint32_t next() {
        always(last_ < UINT32_MAX, "more orders than there are numbers");
        return ++last_;
    }

  private:
    uint32_t last_ = 0;
};

}  // namespace fermata::keeping
