// Mutexes that name their owner by kernel thread id.
//
// A recursive or error-checking pthread mutex compares its owner with the calling thread's id, and glibc's
// own loader lock is one: a thread saved in the middle of dlopen would never get out of it after a restart,
// where ids are new. So the agent looks for held ones while all threads stand still, and a restart writes the
// new ids.
//
// They are found by their form in memory (glibc's struct __pthread_mutex_s): lock word, count, owner, users
// and kind must all fit, 40 bytes in all. Searched are resident pages, up to a limit of shared ones and one
// of others.
#pragma once

#include <cstdint>
#include <vector>

#include "base/page.h"
#include "base/range.h"

namespace fermata::split::threads {

// Agent, all stopped. Before memory is collected: what the search will write to is touched, so that it counts
// as memory with content.
void make_room_for_held_mutexes();

struct MutexOwner {
    int32_t tid;
    int32_t record;
};

// Readable and writable memory where one may lie.
struct MutexArea {
    Range range;
    bool shared = false;
    bool resident = false;  // all of it is there; else the page map tells what is
};

// The search, which fills ThreadTable::held.
class MutexSearch {
  public:
    // Agent, all stopped. `areas`: the most likely ones first. `unchanged` (address order): memory that
    // nobody has written since the last search, which is believed there.
    MutexSearch(const std::vector<MutexArea>& areas, const std::vector<Range>& unchanged);
    // Finds those that a copy of this process would not hold as they are now.
    void in_shared_memory() noexcept;
    // The rest, after that. No malloc, no lock: a child made by a bare fork can do it in its copy.
    void in_own_memory() noexcept;

  private:
    void search(const std::vector<MutexArea>& areas) noexcept;
    std::vector<MutexOwner> owners_;
    std::vector<MutexArea> shared_, own_;
    std::vector<uint64_t> entries_;  // of a part of the page map
};
// Restart, when every thread has its new id and none has gone on.
void give_mutexes_to_new_ids();

}  // namespace fermata::split::threads
