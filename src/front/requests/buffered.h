// Buffered sends: a copy in the front's heap and an ordinary non-blocking send. The application's attached
// buffer is only counted, never used, so it needs no care at a checkpoint.
#pragma once

#include "front/requests/engine.h"

namespace fermata::front {

// Packs the data into a copy that the request owns and starts the send. An error class: ERR_BUFFER when the
// attached buffer would not have had room.
int start_buffered(RequestObject* r, clock::Slot& slot) noexcept;
// The send is complete: its room is free again.
void buffered_done(RequestObject* r) noexcept;

}  // namespace fermata::front
