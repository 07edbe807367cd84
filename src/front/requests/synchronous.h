// Synchronous sends (MPI_Issend, MPI_Ssend, MPI_Ssend_init) over a checkpoint: complete at their sender only
// once the receiving *program* has received.
//
// The library completes one as soon as anybody asks for the bytes of its message. So in a job that uses them
// nobody does before all ranks are frozen: a pull only matches (MPI_Improbe), which no sender notices, and
// the entry of the queue is *held*. Senders that others wait for then need their receivers, and say so
// (licences). Once every rank is frozen nobody hears of a completion: all is taken, and a synchronous send
// that completes meanwhile is kTaken. When nothing is on its way any more, settle() tells which of them were
// really received: messages of one channel (communicator, tag, sender, receiver) are received in order, so
// what waits in the queue of the receiver are the last k of the channel, and the sender has counted how many
// it sent there after each open synchronous one. Those that wait are kUnread; the queue's entry owes a
// receipt, sent when the program receives it. Entries and requests are part of the image, receipts are
// drained like messages. MPI_Cancel does nothing to a send that waits for its receipt, as both libraries do
// nothing to one; where a library cancels sends, their places in their channels do not count.
//
// A job uses them from the first one on; ranks learn it with the targets of a checkpoint. The first rank of
// all that uses them while a checkpoint converges waits and has it given up; the root begins another at once.
#pragma once

#include "front/core/call.h"
#include "front/core/library_lock.h"
#include "front/requests/queue.h"

namespace fermata::front {

struct CommObject;
struct RequestObject;

// Tag of receipts on the private world: the largest that MPI promises. Whoever else sends there keeps off it.
inline constexpr int kReceiptTag = 32767;

// ---- the sender

extern volatile uint32_t synchronous_ready;
void first_synchronous(Call& call) noexcept;
// Before a program's synchronous send, outside of the library's lock: may wait, and offer stop points.
inline void before_synchronous(Call& call) noexcept {
    if (__builtin_expect(synchronous_ready == 0, 0)) first_synchronous(call);
}
// Does a thread wait in it for the checkpoint to be given up?
bool synchronous_waits() noexcept;

// The request's message is the newest of its channel, which is counted until the program was told its end.
void channel_open(RequestObject* r) noexcept;
void channel_close(RequestObject* r) noexcept;
// A message is sent: its place, 0 if none counts there. Not, after all: the newest one.
uint64_t channel_count(int32_t world, const CommObject* comm, int tag) noexcept;
void channel_uncount(int32_t world, const CommObject* comm, int tag) noexcept;
// The send of this request was cancelled or refused.
void channel_uncount(const RequestObject* r) noexcept;

// Waits for a receipt: looks for some. True when it is complete.
bool read_by_now(RequestObject* r) noexcept FERMATA_WANTS(library_lock);

// ---- the receiver

// The program receives this message of the world rank.
void send_receipt(const QueuedMessage* message, int32_t world) noexcept FERMATA_WANTS(library_lock);

// ---- the agent

struct ReceiptTotals {
    uint64_t sent, received, open;
};
// One round of the drain.
ReceiptTotals drain_receipts() noexcept FERMATA_WANTS(library_lock);
// All ranks are drained. Collective over all of them; an error class.
int synchronous_settle() noexcept;
// The checkpoint was given up after the ranks had frozen and before settle(): nobody can tell any more, what
// the library completed is complete.
void synchronous_given_up() noexcept FERMATA_WANTS(library_lock);

}  // namespace fermata::front
