// The lower half's part of the table of ended children (split/ended_children.h): noted before a process gives
// its place to another one, taken over by that.
#pragma once

#include <vector>

#include "split/ended_children.h"
#include "split/ids/table.h"
#include "split/process/children.h"

namespace fermata::split::process {

// Notes how each of `children` has ended, in place of what was noted before in this process. One that runs
// still is killed for whoever goes on from an image: `lost` notes it so. While all threads stand, after
// ids::note(). Returns how many found no room.
size_t note_ended(EndedChildren& table, const std::vector<Child>& children, const ids::Table& ids, bool lost);

// This process has taken the place of the one that noted them.
void take_over_ended(EndedChildren& table);

}  // namespace fermata::split::process
