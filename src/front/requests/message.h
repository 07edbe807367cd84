// Matched messages: handles of MPI_Mprobe. A message matched in the lower half is received into the upper one
// by the drain, so a handle that the application holds over a checkpoint survives it.
#pragma once

#include "front/requests/engine.h"

namespace fermata::front {

struct MessageObject : Object {
    MessageObject() : Object(Kind::message) {}
    QueuedMessage* queued = nullptr;  // its bytes are (coming) here; otherwise `real` names it
    CommObject* comm = nullptr;       // holds a reference
    int32_t source = 0, tag = 0;
    int64_t bytes = 0;
    MessageObject* next = nullptr;  // all of them
    MessageObject* previous = nullptr;
};

MessageObject* new_message(CommObject* comm, const mpi::Status& envelope) noexcept;
void release_message(MessageObject* message) noexcept;
// The agent receives every matched message into the upper half; how many still arrive.
uint64_t drain_messages() noexcept FERMATA_WANTS(library_lock);

}  // namespace fermata::front
