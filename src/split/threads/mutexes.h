// Mutexes that name their owner by kernel thread id.
//
// A recursive or error-checking pthread mutex compares its owner with the calling thread's id, and glibc's
// own loader lock is one: a thread saved in the middle of dlopen would never get out of it after a restart,
// where ids are new. So the agent looks for held ones while all threads stand still, and a restart writes the
// new ids.
//
// They are found by their form in memory (glibc's struct __pthread_mutex_s): lock word, count, owner, users
// and kind must all fit, 40 bytes in all. Searched are resident pages, small mappings first (libraries' data,
// the heap), up to a limit.
#pragma once

#include <vector>

#include "split/address/range.h"

namespace fermata::split::threads {

// Agent, all stopped. Before memory is collected: what the search will write to is touched, so that it counts
// as memory with content.
void make_room_for_held_mutexes();
// Fills ThreadTable::held. `unchanged` (address order): memory that nobody has written since the last search,
// which is believed there.
void find_held_mutexes(const std::vector<Range>& unchanged);
// Restart, when every thread has its new id and none has gone on.
void give_mutexes_to_new_ids();

}  // namespace fermata::split::threads
