#include "front/requests/direct_entry.h"

namespace fermata::front {

int DirectEntry::class_of(int rc) noexcept { return front.table->ClassOf(rc); }

int DirectEntry::fail(const split::ThreadRecord* record, const CommObject* comm, int rc) noexcept {
    return raise_on(static_cast<mpi::Comm>(comm->handle), rc, record->waiting_in);
}

}  // namespace fermata::front
