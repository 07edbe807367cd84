// Lists of ranges: in address order, none reaching into the next.
#pragma once

#include <vector>

#include "base/page.h"
#include "base/range.h"

namespace fermata {

// Adds `run` behind them; it may only touch the last one.
void append(std::vector<Range>& ranges, Range run);

std::vector<Range> intersection(const std::vector<Range>& a, const std::vector<Range>& b);
// The parts of `a` that are not in `b`.
std::vector<Range> difference(const std::vector<Range>& a, const std::vector<Range>& b);

}  // namespace fermata
