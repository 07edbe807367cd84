// Beginning and end of MPI in the application. The real library is initialised before the application runs
// and ends after it; what happens here is the application's view of it.
#include <stdlib.h>
#include <sys/syscall.h>

#include "base/kill_point.h"
#include "clock/clock.h"
#include "front/calls/comm_create.h"
#include "front/core/bridge.h"
#include "front/core/fatal.h"
#include "front/core/sys.h"
#include "front/logged/log.h"
#include "front/objects/api.h"
#include "front/objects/objects.h"
#include "front/objects/session.h"
#include "front/requests/engine.h"

namespace fermata::front {
namespace {

// State of the application's own MPI_Init and MPI_Finalize. `front.life` is the library's: sessions start it,
// too, and it ends with the last of both.
enum class World : uint32_t { not_yet, running, finalized };
World world = World::not_yet;
uint32_t open_sessions = 0;
int exit_code = 0;  // what the program that is leaving has handed to exit()
SpinLock sessions_lock;

void start(Call& call, int level) noexcept {
    // The lower half may have more than was asked for; less only if the library was built so. The agent needs
    // its own turn in the library, so the lower half asks for serialized at least whatever the application
    // wants.
    level = level < front.library_level ? level : front.library_level;
    if (bridge()->message_log != 0 && level > FM_THREAD_SERIALIZED) level = FM_THREAD_SERIALIZED;
    if (front.life == Life::before || level > front.thread_level) front.thread_level = level;
    if (front.thread_level >= FM_THREAD_MULTIPLE && front.threads == 0) {
        front.threads = 1;
        add_watch(kThreads);
        front.clock->set_thread_multiple(true);
    }
    if (front.life != Life::before) return;
    // From a constructor it would be called after the destructors.
    ::on_exit([](int code, void*) { exit_code = code; }, nullptr);
    front.main_fs = split::read_fs();
    objects_start();
    logged::start();
    front.life = Life::running;
}

int initialize(Call& call, int required, int* provided) noexcept {
    if (world != World::not_yet || front.life == Life::finalized) return FM_ERR_OTHER;
    if (required < FM_THREAD_SINGLE || required > FM_THREAD_MULTIPLE) return FM_ERR_ARG;
    start(call, required);
    world = World::running;
    if (provided != nullptr) *provided = front.thread_level;
    return 0;
}

// Waiting for all ranks: outside of MPI's own operations, so a checkpoint may come, and messages to this rank
// are taken so that their senders get here too.
void wait_for_all(Call& call) noexcept {
    Waiter waiter(call);
    uint32_t turns = 0;
    Naps naps(50);
    uint64_t told = ~uint64_t{0};  // in which life of the job; a restarted root has heard nothing yet
    for (;;) {
        Careful careful(call.record());
        if (logged::on()) logged::progress();
        if (told != front.restarts && (!logged::on() || logged::may_arrive())) {
            told = front.restarts;
            kill_point("finalize.before");
            bridge()->arrive_finalize();
            kill_point("finalize.arrived");
        }
        if (*bridge()->finalize_released != 0) return kill_point("finalize.released");
        {
            SpinGuard guard(library_lock);
            reap_orphans(slot_of(call.record()));
            LOWER(Progress)();
        }
        if (pending_checkpoint() || call.record()->stop != 0)
            waiter.turn({});
        else if (++turns > 64)
            sleep_ns(naps.next_ns());
        else
            yield_cpu();
    }
}

// MPI_Comm_free does not wait for the others (objects/comm.cpp). Now that all ranks are here everybody who
// will free has freed, and what is on its way must be received: the library would complain of it on the
// program's output. The time is for programs in which not all members freed a communicator.
void farewells(Call& call) noexcept {
    constexpr uint64_t kPatienceNs = 1000000000;
    uint64_t start = now_ns();
    Naps naps(50);
    for (uint32_t turns = 0; comms_leaving(call) && now_ns() - start < kPatienceNs; turns++) {
        if (turns < 64)
            yield_cpu();
        else
            sleep_ns(naps.next_ns());
    }
}

void finish() noexcept {
    split::Crossing crossing(split::this_thread());
    bridge()->finish_mpi();
}

// The end of the library, when neither MPI_Finalize nor a session is to come any more.
void end(Call& call) noexcept {
    wait_for_all(call);
    farewells(call);
    if (logged::on()) logged::read_last();
    front.life = Life::finalized;
    finish();
}

// A program that never used MPI: the real library has been initialised all the same, and launchers take an
// exit without MPI_Finalize for a crash. One that used it and did not finalize is left to the launcher, as
// natively. One that used sessions only may have opened another one until now.
__attribute__((destructor(101))) void end_of_program() {
    if (fermata_upper.bridge == nullptr) return;
    if (front.life == Life::running && world == World::not_yet && open_sessions == 0) {
        Call call("exit");
        return end(call);
    }
    if (front.life == Life::running) {  // not a child that the program has forked
        if (sys(SYS_getpid) == bridge()->process) bridge()->leaves(exit_code);
        return;
    }
    if (front.life != Life::before) return;
    Call call("exit");
    front.life = Life::finalized;
    finish();
}

}  // namespace

extern "C" {

int fm_Init(int*, char***) {
    Call call("MPI_Init");
    return call.finish(initialize(call, FM_THREAD_SINGLE, nullptr));
}

int fm_Init_thread(int*, char***, int required, int* provided) {
    Call call("MPI_Init_thread");
    return call.finish(initialize(call, required, provided));
}

int fm_Initialized(int* flag) {
    *flag = world != World::not_yet ? 1 : 0;
    return 0;
}

int fm_Finalized(int* flag) {
    *flag = world == World::finalized ? 1 : 0;
    return 0;
}

int fm_Query_thread(int* provided) {
    *provided = front.thread_level;
    return 0;
}

int fm_Is_thread_main(int* flag) {
    *flag = split::read_fs() == front.main_fs ? 1 : 0;
    return 0;
}

int fm_Finalize() {
    if (world != World::running) {
        Call call("MPI_Finalize");
        return call.finish(FM_ERR_OTHER);
    }
    // Callbacks of the application: not inside a call of ours.
    objects_finalize();
    Call call("MPI_Finalize");
    world = World::finalized;
    if (open_sessions == 0) end(call);
    return 0;
}

int fm_Session_init(Info info, Errhandler errhandler, Session* session) {
    Call call("MPI_Session_init");
    *session = FM_SESSION_NULL;
    if (front.life == Life::finalized) return call.finish(FM_ERR_OTHER);
    if (front.life == Life::before) start(call, front.library_level);  // no handles before
    ErrhandlerObject* handler = find(errhandler);
    if (handler == nullptr) return call.finish(FM_ERR_ARG);
    int level = level_named(info, front.thread_level);
    start(call, level);
    auto* made = fm_new<SessionObject>();
    errhandler_ref(made->errhandler = handler);
    made->thread_level = level < front.thread_level ? level : front.thread_level;
    *session = Session{give_handle(made)};
    SpinGuard guard(sessions_lock);
    open_sessions++;
    return 0;
}

int fm_Session_finalize(Session* session) {
    Call call("MPI_Session_finalize");
    SessionObject* object = find(*session);
    if (object == nullptr) return call.finish(*session, FM_ERR_SESSION);
    take_handle(object);
    errhandler_unref(object->errhandler);
    fm_delete(object);
    *session = FM_SESSION_NULL;
    bool last;
    {
        SpinGuard guard(sessions_lock);
        last = --open_sessions == 0;
    }
    if (last && world == World::finalized) end(call);
    return 0;
}

int fm_Abort(Comm comm, int code) {
    char line[128] = "fermata: rank ";
    size_t at = __builtin_strlen(line);
    auto number = [&](int64_t value) {
        char digits[24];
        int n = 0;
        if (value < 0) line[at++] = '-';
        uint64_t rest = value < 0 ? static_cast<uint64_t>(-value) : static_cast<uint64_t>(value);
        do {
            digits[n++] = static_cast<char>('0' + rest % 10);
            rest /= 10;
        } while (rest != 0);
        while (n > 0) line[at++] = digits[--n];
    };
    number(front.world_rank);
    for (const char* c = " called MPI_Abort with code "; *c != 0; c++) line[at++] = *c;
    number(code);
    line[at] = 0;
    (void)comm;
    // The code goes to the environment, which sees its last byte: 0 would look like success (of 256 it does
    // with the libraries' own launchers).
    bridge()->fatal(line, (code & 0xff) == 0 ? 1 : code);
    return FM_ERR_OTHER;
}

}  // extern "C"

}  // namespace fermata::front
