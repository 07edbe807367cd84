// The collective clock's surroundings: how it pulls and naps, and the scope of a blocking collective.
#include "front/requests/collective.h"

#include "front/core/bridge.h"
#include "front/core/fatal.h"
#include "front/core/sys.h"
#include "front/objects/comm.h"
#include "front/objects/real.h"
#include "front/requests/engine.h"

namespace fermata::front {
namespace {

// The gate runs inside an entry, on its thread; from its first look on the thread is careful.
split::ThreadRecord* gate_thread() noexcept {
    split::ThreadRecord* record = split::this_thread();
    record->mode = kCareful;
    return record;
}

void clock_pull(void*) {
    split::ThreadRecord* record = gate_thread();
    pull(record, slot_of(record));
}
void clock_progress(void*) {
    gate_thread();
    SpinGuard guard(library_lock);
    LOWER(Progress)();
}
void clock_nap(void*, std::atomic<uint32_t>* bell, uint32_t seen, uint32_t us) {
    split::ThreadRecord* record = gate_thread();
    if (stop_here(record)) return;
    futex_nap(bell, seen, us);
}
void clock_poke(void*) { bridge()->poke_agent(); }
void clock_fence(void*) {
    if (!clock::process_fence())
        fatal_line("fermata: this kernel refuses membarrier(2): a checkpoint would be unsafe");
}
void* clock_chunk(void*, size_t bytes) { return fm_map(bytes); }

clock::Protocol protocol_of_job() noexcept {
    // Set by `fermata run --protocol`, read once: part of the rank's state from then on.
    clock::Protocol protocol = clock::Protocol::cc_d;
    if (const char* name = bridge()->protocol;
        name != nullptr && *name != 0 && !clock::protocol_from_name(name, &protocol))
        fatal_line("fermata: unknown protocol: use cc-d, cc or 2pc");
    return protocol;
}

}  // namespace

volatile int32_t epochs_open;

void start_clock() noexcept {
    clock::Options options;
    options.me = front.world_rank;
    options.world = front.world_size;
    options.protocol = protocol_of_job();
    clock::Environment environment{nullptr, clock_pull, clock_progress, clock_nap, clock_poke, clock_fence};
    front.clock = clock::RankClock::create(options, environment, clock::ChunkSource{nullptr, clock_chunk});
}

CollectiveScope::CollectiveScope(Call& call, CommObject& comm) noexcept
    : clock_(comm.clock), record_(call.record()), call_(&call), comm_(&comm) {
    begin();
}
CollectiveScope::CollectiveScope(Call& call, mpi::Comm comm) noexcept
    : clock_(nullptr), record_(call.record()), call_(&call), comm_(find(comm)) {
    if (comm_ == nullptr) return;
    clock_ = comm_->clock;
    begin();
}

}  // namespace fermata::front
