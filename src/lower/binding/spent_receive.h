// The end of a receive in two parts. A look (look.h) says that the message is there; the request, which the
// library would free before its MPI_Test or MPI_Recv comes back, is given back while the next message is
// waited for. So what the application does with a message begins earlier than natively.
#pragma once

#include <cstdint>

#include "fermata_table.h"

namespace fermata::lower {

// The receive whose end was told and that has not been given back; 0: none.
extern mpi::RealRequest spent_receive;

// Gives it back. A code of the library's; MPI_ERR_INTERN when it has not ended after all.
int end_spent_receive();

}  // namespace fermata::lower
