// Open MPI's status: the same five fields in C and in Fortran, where only their alignment differs. Included
// after an A_Status and the generated values.
#pragma once

namespace fermata::abi {

inline void in_status(Status* to, const A_Status* from) {
    to->source = in_rank(from->source);
    to->tag = in_tag(from->tag);
    to->error = in_errclass(from->error);
    to->cancelled = from->cancelled;
    to->count = static_cast<Count>(from->count);
    to->spare = 0;
}
// MPI_ERROR is only written where the standard says so (arrays, when the call returns MPI_ERR_IN_STATUS).
inline void out_status(A_Status* to, const Status& from) {
    if (from.source == FM_ANY_SOURCE) to->error = 0;  // the empty status is whole (MPI-4.0 3.7.3)
    to->source = out_rank(from.source);
    to->tag = out_tag(from.tag);
    to->cancelled = from.cancelled;
    to->count = static_cast<uint64_t>(from.count);
}

}  // namespace fermata::abi
