// What the short forms in the fronts use of the core, without any object: they all give up, so that the tests
// see what the fronts hand to the core.
#include "front/core/short_collective.h"
#include "front/p2p/short_message.h"

namespace fermata::front {
namespace {

// As front/posix/nobody.h: the short forms look for a thread's record through GS, and find one that is
// nobody's.
const bool nobody = [] {
    static split::ThreadRecord record{};
    static char control_block[64];
    split::record_at(reinterpret_cast<uint64_t>(control_block)) = &record;
    split::write_gs(reinterpret_cast<uint64_t>(control_block));
    return true;
}();

}  // namespace

constinit Object no_object(Kind::none);
constinit Registry registry;
constinit Front front{};
constinit RequestPool request_pool{};
int stop_at_exit() noexcept { return 0; }
int ShortEntry::class_of(int rc) noexcept { return rc; }
int ShortEntry::fail(const split::ThreadRecord*, const CommObject*, int rc) noexcept { return rc; }
int ShortCollective::failed(split::ThreadRecord*, clock::Comm&, int rc) noexcept { return rc; }
int ShortCollective::leave_pending(split::ThreadRecord*, clock::Comm&) noexcept { return 0; }
int ShortMessage::wait_on(int rc, mpi::RealRequest*, void*) noexcept { return rc; }
void ShortMessage::end_spent_receive(split::ThreadRecord*) noexcept {}
bool ShortMessage::strip(split::ThreadRecord*, Request*) noexcept { return true; }
int ShortMessage::start_failed(split::ThreadRecord*, Request*, int rc) noexcept { return rc; }
int ShortMessage::probe_failed(split::ThreadRecord*, const CommObject*, int rc) noexcept { return rc; }
int ShortMessage::exchange_refused(split::ThreadRecord*, const Exchange&, mpi::RealRequest, int rc) noexcept {
    return rc;
}
int ShortMessage::exchange_goes_on(split::ThreadRecord*, const Exchange&, const mpi::RealRequest*,
                                   mpi::Status*) noexcept {
    return 0;
}
int ShortMessage::send_failed(split::ThreadRecord*, const CommObject*, int, int rc) noexcept { return rc; }
int ShortMessage::begin_failed(split::ThreadRecord*, Request*, int rc) noexcept { return rc; }
int ShortMessage::receive_failed(split::ThreadRecord*, const CommObject*, int, int rc) noexcept { return rc; }
int ShortMessage::receive_ended(split::ThreadRecord*, const CommObject*, int, int error) noexcept {
    return error;
}
int ShortMessage::receive_goes_on(split::ThreadRecord*, void*, mpi::Count, mpi::Datatype, int, int,
                                  CommObject*, mpi::RealRequest, mpi::Status*) noexcept {
    return 0;
}
void ShortMessage::test_failed(split::ThreadRecord*, Request*, const mpi::Status&, int) noexcept {}
void ShortMessage::wait_failed(split::ThreadRecord*, Request*, const mpi::Status&, int) noexcept {}

}  // namespace fermata::front
