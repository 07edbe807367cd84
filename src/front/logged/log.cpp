#include "front/logged/log.h"

#include "front/core/bridge.h"
#include "front/core/fatal.h"
#include "front/logged/state.h"
#include "front/objects/objects.h"

namespace fermata::replay {

void* take_memory(size_t bytes) noexcept { return front::fm_alloc(bytes); }
void give_memory(void* block) noexcept { front::fm_free(block); }

}  // namespace fermata::replay

namespace fermata::front::logged {
namespace {

Log* log_;

Block block_of(const RequestObject* r) noexcept { return {r->buf, r->count, r->type}; }

Part& part_of(const RequestObject* r) noexcept { return *r->collective->part; }

RequestObject* must_find(replay::RequestNo no) noexcept {
    RequestObject* r = find(no);
    if (r == nullptr) fatal_line("fermata: the message log names a request that is not there");
    return r;
}

// Answers to what the machine asks of the program's memory.
void buffers_contribution(void*, const replay::Request& request, replay::Bytes* out) {
    const RequestObject* r = must_find(request.no);
    if (request.send() != nullptr)
        pack(block_of(r), out);
    else
        contribution(part_of(r), *r->comm, out);
}
void buffers_arrived(void*, const replay::Request& request, replay::Bytes* out) {
    const RequestObject* r = must_find(request.no);
    if (request.receive() == nullptr) return result(part_of(r), *r->comm, out);
    pack(block_of(r), out);
    if (out->size() > static_cast<size_t>(r->status.count)) out->resize(static_cast<size_t>(r->status.count));
}
void buffers_deliver(void*, const replay::Request& request, const replay::Bytes& bytes) {
    RequestObject* r = must_find(request.no);
    const auto size = static_cast<int64_t>(bytes.size());
    if (const replay::Receive* receive = request.receive()) {
        unpack(block_of(r), bytes.data(), size);
        r->status = mpi::Status{
            rank_in(*r->comm, receive->got->source), static_cast<int32_t>(receive->got->tag), 0, 0, size, 0};
    } else {
        put_result(part_of(r), *r->comm, bytes.data(), size);
    }
}
// A copy learns from its leader's record which communicator was made; it has no real one.
void buffers_told(void*, const replay::Request& request) {
    const replay::Collective* call = request.collective();
    if (call == nullptr || !call->made || is_live()) return;
    the_log().made = with_members(call->made->members);
}

}  // namespace

Log& the_log() noexcept { return *log_; }

void start() noexcept {
    if (bridge()->message_log == 0 || log_ != nullptr) return;
    log_ = fm_new<Log>(
        replay::Buffers{nullptr, buffers_contribution, buffers_arrived, buffers_deliver, buffers_told});
    for (const CommObject* comm : {&comm_world, &comm_self}) {
        replay::Vec<Rank> members;
        for (Member member : comm->members) members.push_back(member.rank());
        machine().world(uid_of(*comm), members);
    }
    spill_anew();
    synchronous_ready = 1;  // synchronous sends are told by receipts of the log
    set_careful(kLogged);
}

void refuse(const char* function) noexcept {
    const char* pieces[] = {"fermata: a job with a message log cannot have ", function,
                            ": run it without --message-log and --replicas", nullptr};
    fatal_join(pieces);
}

RequestObject* find(replay::RequestNo no) noexcept {
    const Vec<RequestObject*>& open = the_log().open;
    const auto wanted = replay::value(no);
    size_t low = 0, high = open.size();
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (open[middle]->posted < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < open.size() && open[low]->posted == wanted) return open[low];
    return the_log().starting;
}

CommObject* find(replay::Uid uid) noexcept {
    const auto wanted = replay::value(uid);
    if (comm_world.uid == wanted) return &comm_world;
    if (comm_self.uid == wanted) return &comm_self;
    for (CommObject* comm = first_comm(); comm != nullptr; comm = comm->next)
        if (comm->uid == wanted) return comm;
    return nullptr;
}

void enter_open(RequestObject* r, replay::RequestNo no) noexcept {
    r->posted = replay::value(no);
    the_log().open.push_back(r);
    the_log().starting = nullptr;
}

int rank_in(const CommObject& comm, Rank rank) noexcept { return ranks::find(comm.peers(), Member(rank)); }

}  // namespace fermata::front::logged
