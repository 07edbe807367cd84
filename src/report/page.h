// A report is one page of HTML on what became of a job, out of its journal: no script, no file beside it,
// pictures drawn by us. Its size is bounded whatever the journal holds.
//
// Each number of it stands in an element with data-k and data-v, its name and its value: a test compares them
// with the journal.
#pragma once

#include <string>

#include "journal/history.h"

namespace fermata::report {

std::string page(const journal::History& job, double floor_bandwidth = 0);

}  // namespace fermata::report
