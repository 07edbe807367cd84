// Before ranks do together what follows Save, all of them have to know that all will: a daemon may die among
// its messages, and a checkpoint be given up, when some have been told to save and others have not.
#pragma once

#include <cstdint>

#include "fermata_table.h"

namespace fermata::lower {

// One answer of every rank, the same result at all of them (MPI_Iallreduce on the private world). Every rank
// begins its meetings in the same order. Whoever may use MPI; the object has to live until it is over, and a
// rank that does not care for the result leaves it for ever.
class Meeting {
  public:
    // Begins it: does this rank take part? Throws fermata::Error.
    Meeting(uint64_t private_world, bool takes_part);
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;
    // Looks once.
    bool over();
    // Once over: everybody takes part.
    bool everybody() const { return all_ != 0; }

  private:
    int mine_, all_ = 0;
    mpi::RealRequest request_{};
};

// The sum over all ranks, which thereby wait for each other; in the main thread, before there is an agent.
int sum_of_all(uint64_t private_world, int mine);

}  // namespace fermata::lower
