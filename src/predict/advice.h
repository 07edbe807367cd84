// Advice says in a line for people what an interval costs and what a better one would.
#pragma once

#include <string>

#include "predict/interval.h"

namespace fermata::predict {

// "3.1 %"; "more than the work itself" from 100 % on.
std::string percent(double share);

// "Every 10.0 min costs 3.1 %, every 24.0 min 1.9 % (Daly 2006)." `interval`: today's, 0 = none.
std::string advice(const Job& job, double interval);

}  // namespace fermata::predict
