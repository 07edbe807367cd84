// The end of a receive in two parts. MPI_Request_get_status says that the message is there; the request,
// which the library would free before its MPI_Test or MPI_Recv comes back, is given back while the next
// message is waited for. So what the application does with a message begins earlier than natively.
#pragma once

#include <cstdint>

#include "fermata_table.h"

namespace fermata::lower {

// The receive whose end was told and that has not been given back; 0: none.
extern mpi::RealRequest spent_receive;

// Gives it back. A code of the library's; MPI_ERR_INTERN when it has not ended after all.
int end_spent_receive();

// Does this library say a truncated message in MPI_Request_get_status, by its code (MPICH 4.0.2) or by a
// count that is larger than the buffer (Open MPI 4.1.4 with ob1, which ends the job on all other errors)?
// Tries it with a message to itself. Errors return.
bool sees_truncation_early();

}  // namespace fermata::lower
