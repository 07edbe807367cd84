// A blocking collective on a communicator, as the collective clock sees it.
//
//     CollectiveScope scope(call, comm);       // may park here while a checkpoint converges: read real handles after
//     rc = LOWER(Bcast)(..., real(comm));
//
// Creation of communicators uses it too: the new communicator's uid is agreed on while the scope is still open.
// Cheap path: two plain stores and one predicted branch at each end.
#pragma once

#include "front/core/call.h"

namespace fermata::front {

struct CommClockRef;  // the clock's state of one communicator (src/clock)

class CollectiveScope {
  public:
    CollectiveScope(Call& call, mpi::Comm comm) noexcept;
    ~CollectiveScope() noexcept;
    CollectiveScope(const CollectiveScope&) = delete;
    CollectiveScope& operator=(const CollectiveScope&) = delete;
    // Ends the scope early (before an error handler runs).
    void end() noexcept;

  private:
    void* clock_;
    split::ThreadRecord* record_;
};

}  // namespace fermata::front
