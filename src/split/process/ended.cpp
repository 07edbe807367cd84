#include "split/process/ended.h"

#include <algorithm>
#include <iterator>

#include "split/threads/raw.h"

namespace fermata::split::process {
namespace {

// Not reaped by that: the program asks for it still, when this process goes on.
bool has_ended(int pid, siginfo_t& info, rusage& usage) {
    info = {};
    return raw::call(SYS_waitid, P_PID, pid, raw::word(&info), WEXITED | WNOHANG | WNOWAIT,
                     raw::word(&usage)) == 0 &&
           info.si_pid == pid;
}

// Children are reaped by the kernel where nobody wants to hear of them.
bool wanted() {
    raw::KernelSigaction action = {};
    raw::call(SYS_rt_sigaction, SIGCHLD, 0, raw::word(&action), 8);
    return action.handler != reinterpret_cast<uintptr_t>(SIG_IGN) && (action.flags & SA_NOCLDWAIT) == 0;
}

}  // namespace

size_t note_ended(EndedChildren& table, const std::vector<Child>& children, const ids::Table& ids,
                  bool lost) {
    for (EndedChild& one : table.child)
        if (one.state == EndedChild::kNoted) one.state = EndedChild::kFree;
    size_t without_room = 0;
    for (const Child& child : children) {
        siginfo_t info;
        rusage usage = {};
        const bool ended = has_ended(child.pid, info, usage);
        if (!ended && !(lost && wanted())) continue;
        EndedChild* free = std::find_if(std::begin(table.child), std::end(table.child),
                                        [](const EndedChild& one) { return one.state == EndedChild::kFree; });
        if (free == std::end(table.child)) {
            ++without_room;
            continue;
        }
        const long group = raw::call(SYS_getpgid, child.pid);
        free->pid = ids::shown_of(ids, child.pid);
        free->group = group > 0 ? ids::shown_whole(ids, ids.group, static_cast<int32_t>(group)) : 0;
        free->real = child.pid;
        free->code = ended ? info.si_code : CLD_KILLED;
        free->status = ended ? info.si_status : SIGKILL;
        free->user = ended ? info.si_uid : static_cast<uint32_t>(raw::call(SYS_getuid));
        free->usage = usage;
        free->state = EndedChild::kNoted;
    }
    return without_room;
}

void take_over_ended(EndedChildren& table) {
    table.process = raw::getpid();
    uint32_t waiting = 0;
    for (EndedChild& one : table.child) {
        if (one.state == EndedChild::kNoted) one.state = EndedChild::kWaits;
        // Whoever was stopped while it read one takes that one off the count.
        waiting += one.state == EndedChild::kWaits || one.state == EndedChild::kTaken;
    }
    __atomic_store_n(&table.waiting, waiting, __ATOMIC_RELEASE);
}

}  // namespace fermata::split::process
