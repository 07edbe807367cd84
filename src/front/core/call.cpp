#include "front/core/call.h"

#include "base/naps.h"
#include "clock/clock.h"
#include "front/core/bridge.h"
#include "front/core/fatal.h"
#include "front/core/sys.h"

namespace fermata::front {

split::ThreadRecord* records[split::kMaxThreads];
volatile int32_t record_end;

// A thread of the application is known from here on, and has its slot.
split::ThreadRecord* Call::attach() noexcept {
    split::ThreadRecord* record = bridge()->attach(split::read_fs());
    if (record->index < 0 || record->index >= split::kMaxThreads)
        fatal_line("fermata: too many threads call MPI");
    record->slot = &front.clock->slot(record->index);
    __atomic_store_n(&records[record->index], record, __ATOMIC_RELEASE);
    int32_t end = record_end;
    while (end <= record->index && !__atomic_compare_exchange_n(&record_end, &end, record->index + 1, false,
                                                                __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
    return record;
}

// The thread says in_mpi == 0 while it stands here, so the agent may capture it at any instruction: no lock
// is held and nothing of the lower half is cached. After the loop `in_mpi` is set again *before* the last
// look at the frozen bit, as in the constructor of Call.
bool stop_here(split::ThreadRecord* record) noexcept {
    if ((front.careful & kFrozen) == 0 && record->stop == 0) return false;
    if (record->callbacks != 0) return false;  // below us is a call into the lower half: it has to end first
    // More than one: an entry that uses another, or a callback of the application that does.
    uint32_t depth = record->in_mpi;
    const char* waiting_in = record->waiting_in;
    uint32_t mode = record->mode;
    do {
        record->in_mpi = 0;
        asm volatile("" ::: "memory");
        for (Naps naps(20);;) {
            bridge()->stop_point();
            if ((front.careful & kFrozen) == 0 && record->stop == 0) break;
            sleep_ns(naps.next_ns());  // frozen, and the agent has not come to this thread yet
        }
        record->mode = mode;
        record->in_mpi = depth;
        asm volatile("" ::: "memory");
    } while ((front.careful & kFrozen) != 0);
    record->waiting_in = waiting_in;
    return true;
}

bool Call::stop_point() noexcept { return stop_here(record_); }

void Call::enter_frozen() noexcept { stop_point(); }

int stop_at_exit() noexcept {
    bridge()->stop_point();
    return 0;
}

int Call::fail(mpi::Comm comm, int rc) noexcept {
    leave_mpi(record_);
    record_ = nullptr;
    return raise_on(comm, rc, function_);
}
int Call::fail(mpi::Win win, int rc) noexcept {
    leave_mpi(record_);
    record_ = nullptr;
    return raise_on(win, rc, function_);
}
int Call::fail(mpi::File file, int rc) noexcept {
    leave_mpi(record_);
    record_ = nullptr;
    return raise_on(file, rc, function_);
}
int Call::fail(mpi::Session session, int rc) noexcept {
    leave_mpi(record_);
    record_ = nullptr;
    return raise_on(session, rc, function_);
}
int Call::fail_default(int rc) noexcept {
    leave_mpi(record_);
    record_ = nullptr;
    return raise_default(rc, function_);
}

}  // namespace fermata::front
