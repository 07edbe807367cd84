// What the short forms in the fronts use of the core, without any object: they all give up, so that the tests
// see what the fronts hand to the core.
#include "front/requests/direct_collective.h"
#include "front/requests/direct_message.h"

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
int DirectEntry::class_of(int rc) noexcept { return rc; }
int DirectEntry::fail(const split::ThreadRecord*, const CommObject*, int rc) noexcept { return rc; }
int DirectCollective::failed(split::ThreadRecord*, clock::Comm&, int rc) noexcept { return rc; }
int DirectCollective::leave_pending(split::ThreadRecord*, clock::Comm&) noexcept { return 0; }
int DirectMessage::wait_on(int rc, mpi::RealRequest*, void*) noexcept { return rc; }
void DirectMessage::end_spent_receive(split::ThreadRecord*) noexcept {}
bool DirectMessage::strip(split::ThreadRecord*, RequestObject*) noexcept { return true; }
int DirectMessage::start_failed(split::ThreadRecord*, RequestObject*, int rc) noexcept { return rc; }
int DirectMessage::probe_failed(split::ThreadRecord*, const CommObject*, int rc) noexcept { return rc; }
int DirectMessage::exchange_refused(split::ThreadRecord*, const Exchange&, mpi::RealRequest,
                                    int rc) noexcept {
    return rc;
}
int DirectMessage::exchange_goes_on(split::ThreadRecord*, const Exchange&, const mpi::RealRequest*,
                                    mpi::Status*) noexcept {
    return 0;
}
int DirectMessage::send_failed(split::ThreadRecord*, const CommObject*, int, int rc) noexcept { return rc; }
int DirectMessage::begin_failed(split::ThreadRecord*, RequestObject*, int rc) noexcept { return rc; }
int DirectMessage::receive_failed(split::ThreadRecord*, const CommObject*, int, int rc) noexcept {
    return rc;
}
int DirectMessage::receive_ended(split::ThreadRecord*, const CommObject*, int, int error) noexcept {
    return error;
}
int DirectMessage::receive_goes_on(split::ThreadRecord*, void*, mpi::Count, mpi::Datatype, int, int,
                                   CommObject*, mpi::RealRequest, mpi::Status*) noexcept {
    return 0;
}
void DirectMessage::test_failed(split::ThreadRecord*, RequestObject*, const mpi::Status&, int) noexcept {}
void DirectMessage::wait_failed(split::ThreadRecord*, RequestObject*, const mpi::Status&, int) noexcept {}

}  // namespace fermata::front
