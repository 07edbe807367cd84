// Start of the core library, and the services that the lower half asks of it at a checkpoint and a restart.
#include <sys/auxv.h>

#include "fermata_interface.h"
#include "front/core/bridge.h"
#include "front/core/ended.h"
#include "front/core/fatal.h"
#include "front/core/front.h"
#include "front/core/ids.h"
#include "front/core/lower.h"
#include "front/core/sys.h"
#include "front/logged/log.h"
#include "front/objects/objects.h"
#include "front/posix/nobody.h"
#include "front/posix/own_state.h"
#include "front/posix/private_files.h"
#include "front/posix/warden.h"
#include "front/requests/collective.h"
#include "front/requests/engine.h"
#include "front/requests/synchronous.h"
#include "front/services/describe.h"
#include "front/services/tools.h"

namespace fermata::front {
namespace {

// After a bit of `careful` was set: every thread that looked before has shown its in_mpi.
void fence() noexcept {
    if (!clock::process_fence())
        fatal_line("fermata: this kernel refuses membarrier(2): a checkpoint would be unsafe");
}

// From here on pulling is exact.
void arm() noexcept {
    fence();
    engine.armed = 1;
}

// The clock decides what is pending; Front::careful follows.
void follow_clock() noexcept {
    if (front.clock->pending() && (front.careful & kPending) == 0) {
        set_careful(kPending);
        arm();
    }
}

const char* service_inbox(const void* bytes, size_t size) noexcept {
    const char* why = nullptr;
    if (!front.clock->inbox(bytes, size, &why) && why == nullptr)
        why = "clock message that is not understood";
    follow_clock();
    return why;
}
size_t service_outbox(void* bytes, size_t capacity) noexcept { return front.clock->outbox(bytes, capacity); }
// Since when the agent has seen each thread outside MPI, at every look of a pending checkpoint: for `fermata
// status`.
uint64_t outside_since[split::kMaxThreads];

void note_outside(uint64_t now) noexcept {
    for (int32_t i = 0; i < record_end; i++) {
        const split::ThreadRecord* r = records[i];
        if (r == nullptr) continue;
        if (r->in_mpi != 0)
            outside_since[i] = 0;
        else if (outside_since[i] == 0)
            outside_since[i] = now;
    }
}

void service_poll(uint64_t now) noexcept {
    front.clock->poll(now);
    follow_clock();
    note_outside(now);
    ask_for_captives(now);
}

const char* service_give_up() noexcept {
    return synchronous_waits()
               ? "the first synchronous send of the job came while its messages were being taken"
               : objects_give_up();
}

void service_freeze() noexcept {
    if (bridge()->message_log != 0) {  // nobody counts collectives, and nothing is pulled
        set_careful(kFrozen);
        return fence();
    }
    if (!front.clock->frozen()) front.clock->freeze();
    set_careful(kPending | kFrozen);
    arm();
}

void service_take() noexcept { engine.take = 1; }

void service_drain(split::DrainReport* report) noexcept { engine_drain(report); }

int service_before_save() noexcept {
    int rc = synchronous_settle();
    int objects_rc = objects_before_save();
    return rc != 0 ? rc : objects_rc;
}

void use_bridge() noexcept {
    front.table = bridge()->mpi;
    front.direct = front.table->direct;
    front.ended_send = *front.direct.ended_send;
    front.look = *front.direct.look_at_receive;
    front.world_rank = bridge()->world_rank;
    front.world_size = bridge()->world_size;
    front.library_level = bridge()->thread_level;
}

int service_rebuild(char* error, size_t size) noexcept {
    use_bridge();
    posix::watch_warden();
    posix::own_state_restarted();
    front.restarts++;
    engine.armed = 0;
    engine.take = 0;
    // Also when this rank has not called MPI_Init yet: others may have, and rebuilding is collective over all
    // ranks.
    int rc = objects_rebuild(logged::orders(), error, size);
    if (rc == 0) rc = logged::on() ? logged::rebuild(error, size) : engine_rebuild(error, size);
    if (rc == 0) tools_rebuild();
    return rc;
}

void service_resume(int restarted) noexcept {
    for (int32_t i = 0; i < record_end; i++) outside_since[i] = 0;
    if (restarted != 0)
        front.clock->restart();
    else
        front.clock->resume();
    engine.armed = 0;
    engine.take = 0;
    {
        SpinGuard guard(library_lock);
        queue_changed();
        synchronous_given_up();
    }
    clear_careful(kPending | kFrozen);
}

size_t service_log_said(void* bytes, size_t capacity) noexcept { return logged::said(bytes, capacity); }
const char* service_log_orders(const void* bytes, size_t size) noexcept {
    return logged::take_orders(bytes, size);
}
void service_log_go(uint32_t epoch) noexcept { logged::go(epoch); }
const char* service_log_begin_copy() noexcept { return logged::begin_copy(); }
const char* service_log_begin_copy_elsewhere(int descriptor) noexcept {
    return logged::begin_copy_elsewhere(descriptor);
}
const char* service_log_be_copy_elsewhere(int descriptor) noexcept {
    return logged::be_copy_elsewhere(descriptor);
}
void service_log_be_copy() noexcept { logged::be_copy(); }
void service_log_copy_gone() noexcept { logged::copy_is_gone(); }

size_t append(char* text, size_t at, size_t size, const char* piece) noexcept {
    for (; *piece != 0 && at < size; piece++) text[at++] = *piece;
    return at;
}
size_t append(char* text, size_t at, size_t size, int64_t number) noexcept {
    char digits[24];
    int n = sizeof digits;
    digits[--n] = 0;
    uint64_t value = number < 0 ? static_cast<uint64_t>(-number) : static_cast<uint64_t>(number);
    do {
        digits[--n] = static_cast<char>('0' + value % 10);
        value /= 10;
    } while (value != 0);
    if (number < 0) digits[--n] = '-';
    return append(text, at, size, digits + n);
}

int service_refuses(char* why, size_t size) noexcept {
    // A rank that has not called MPI_Init may have messages on their way to it, and takes part in the
    // rebuilding.
    if (front.life == Life::before) objects_start();
    if (front.life != Life::finalized) return objects_refuse(why, size);
    size_t at = append(why, 0, size - 1,
                       "the program is past MPI_Finalize, and what it does then is in no checkpoint");
    why[at] = 0;
    return 1;
}

size_t service_diagnosis(char* text, size_t size) noexcept {
    size_t at = 0;
    for (int32_t i = 0; i < record_end; i++) {
        const split::ThreadRecord* r = records[i];
        if (r == nullptr || r->run == split::Run::gone || r->run == split::Run::free) continue;
        if (r->in_mpi == 0) {
            // A rank that computes: a checkpoint that needs its next MPI call has to wait for it.
            uint64_t since = outside_since[i], now = now_ns();
            if (since == 0 || r->run == split::Run::stopped || now < since) continue;
            uint64_t tenths = (now - since) / 100'000'000;
            at = append(text, at, size, "thread ");
            at = append(text, at, size, int64_t{i});
            at = append(text, at, size, " outside MPI for ");
            at = append(text, at, size, static_cast<int64_t>(tenths / 10));
            at = append(text, at, size, ".");
            at = append(text, at, size, static_cast<int64_t>(tenths % 10));
            at = append(text, at, size, " s\n");
            continue;
        }
        const char* where = r->waiting_in;
        at = append(text, at, size, "thread ");
        at = append(text, at, size, int64_t{i});
        at = append(text, at, size, " in ");
        at = append(text, at, size, where != nullptr ? where : "MPI");
        int32_t peer = r->waiting_for;
        if (peer >= 0) {
            at = append(text, at, size, ", peer rank ");
            at = append(text, at, size, int64_t{peer});
        }
        at = append(text, at, size, captive(r->mode) ? " (in the library)\n" : "\n");
    }
    if (front.clock != nullptr) at += front.clock->diagnosis(text + at, size - at);
    return at;
}

__attribute__((constructor(101))) void find_lower_half() {
    auto* found = reinterpret_cast<split::Bridge*>(getauxval(split::kAuxvBridge));
    if (found == nullptr)
        fatal_line(
            "fermata: this MPI library works only inside `fermata run`: start the program with `fermata run "
            "-- ...`");
    if (found->version != split::kBridgeVersion)
        fatal_line("fermata: the two halves come from different builds: install one of them again");
    fermata_upper.bridge = found;
    // Front and lower half know the same of each other, or calls would land in the wrong function.
    fermata_upper.interface = split::interface_version(mpi::kAbiHash);
    if (found->interface != fermata_upper.interface)
        fatal_line("fermata: the two halves come from different builds: install one of them again");
    // Threads inherit the GS base: from here on it is never 0 in the upper half.
    if (split::known_thread() == nullptr) become_nobody();
    use_bridge();
    start_clock();
    fermata_upper.nobody = nobody_gs();
    fermata_upper.own_state = posix::own_state();
    fermata_upper.private_files = posix::private_files();
    fermata_upper.ids = &ids;
    fermata_upper.ended_children = &ended;
    fermata_upper.raw_call = fermata_raw_call;
    found->register_upper(&fermata_upper);
    posix::watch_warden();
}

}  // namespace
}  // namespace fermata::front

using namespace fermata::front;

fermata::split::UpperServices fermata_upper = {
    .version = fermata::split::kBridgeVersion,
    .interface = 0,
    .bridge = nullptr,
    .nobody = 0,
    .inbox = service_inbox,
    .outbox = service_outbox,
    .poll = service_poll,
    .freeze = service_freeze,
    .take = service_take,
    .give_up = service_give_up,
    .drain = service_drain,
    .before_save = service_before_save,
    .rebuild = service_rebuild,
    .resume = service_resume,
    .refuses = service_refuses,
    .diagnosis = service_diagnosis,
    .describe = describe_objects,
    .command_line = nullptr,
    .command_line_end = nullptr,
    .noted_files = nullptr,
    .own_state = nullptr,
    .ids = nullptr,
    .raw_call = nullptr,
    .log_said = service_log_said,
    .log_orders = service_log_orders,
    .log_go = service_log_go,
    .log_begin_copy = service_log_begin_copy,
    .log_be_copy = service_log_be_copy,
    .log_copy_gone = service_log_copy_gone,
    .private_files = nullptr,
    .log_begin_copy_elsewhere = service_log_begin_copy_elsewhere,
    .log_be_copy_elsewhere = service_log_be_copy_elsewhere,
    .log_size = &logged::log_size,
    .ended_children = nullptr,
};
