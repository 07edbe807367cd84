// Attributes that are asked for, or set, by the number of a process or thread.
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <time.h>

#include "front/core/ids.h"
#include "front/posix/answer.h"
#include "front/posix/next.h"

namespace fermata::front::identity {
namespace {

using posix::answer;
using posix::Next;

Next<int(pid_t, size_t, cpu_set_t*)> next_sched_getaffinity{"sched_getaffinity"};
Next<int(__priority_which_t, id_t)> next_getpriority{"getpriority"};
Next<int(pid_t, clockid_t*)> next_clock_getcpuclockid{"clock_getcpuclockid"};
Next<int(clockid_t, sigevent*, timer_t*)> next_timer_create{"timer_create"};
Next<long(int, pid_t, void*, void*)> next_ptrace{"ptrace"};

__attribute__((constructor)) void find_all() {
    next_sched_getaffinity.find();
    next_getpriority.find();
    next_clock_getcpuclockid.find();
    next_timer_create.find();
    next_ptrace.find();
}

int of_kind(int which, id_t who) {
    const auto number = static_cast<int>(who);
    return which == PRIO_PROCESS ? real_id(number) : which == PRIO_PGRP ? real_group(number) : number;
}

}  // namespace
}  // namespace fermata::front::identity

using namespace fermata;
using namespace fermata::front;
using namespace fermata::front::identity;

#define FERMATA_OF_THREAD(result, name, number, parameters, ...)      \
    FERMATA_INTERPOSE result name parameters noexcept {               \
        return static_cast<result>(answer(sys(number, __VA_ARGS__))); \
    }
FERMATA_OF_THREAD(int, sched_setaffinity, SYS_sched_setaffinity,
                  (pid_t thread, size_t size, const cpu_set_t* set), real_id(thread), size, set)
FERMATA_OF_THREAD(int, sched_setscheduler, SYS_sched_setscheduler,
                  (pid_t thread, int policy, const sched_param* how), real_id(thread), policy, how)
FERMATA_OF_THREAD(int, sched_getscheduler, SYS_sched_getscheduler, (pid_t thread), real_id(thread))
FERMATA_OF_THREAD(int, sched_setparam, SYS_sched_setparam, (pid_t thread, const sched_param* how),
                  real_id(thread), how)
FERMATA_OF_THREAD(int, sched_getparam, SYS_sched_getparam, (pid_t thread, sched_param* how), real_id(thread),
                  how)
FERMATA_OF_THREAD(int, sched_rr_get_interval, SYS_sched_rr_get_interval, (pid_t thread, timespec* interval),
                  real_id(thread), interval)
// (libc's from glibc 2.41 on.)
struct sched_attr;
FERMATA_OF_THREAD(int, sched_setattr, SYS_sched_setattr, (pid_t thread, sched_attr* how, unsigned flags),
                  real_id(thread), how, flags)
FERMATA_OF_THREAD(int, sched_getattr, SYS_sched_getattr,
                  (pid_t thread, sched_attr* how, unsigned size, unsigned flags), real_id(thread), how, size,
                  flags)
FERMATA_OF_THREAD(int, setpriority, SYS_setpriority, (__priority_which_t which, id_t who, int nice), which,
                  of_kind(which, who), nice)
FERMATA_OF_THREAD(ssize_t, process_vm_readv, SYS_process_vm_readv,
                  (pid_t process, const iovec* here, unsigned long here_count, const iovec* there,
                   unsigned long there_count, unsigned long flags),
                  real_id(process), here, here_count, there, there_count, flags)
FERMATA_OF_THREAD(ssize_t, process_vm_writev, SYS_process_vm_writev,
                  (pid_t process, const iovec* here, unsigned long here_count, const iovec* there,
                   unsigned long there_count, unsigned long flags),
                  real_id(process), here, here_count, there, there_count, flags)

FERMATA_INTERPOSE int sched_getaffinity(pid_t thread, size_t size, cpu_set_t* set) noexcept {
    return next_sched_getaffinity(real_id(thread), size, set);
}
FERMATA_INTERPOSE int getpriority(__priority_which_t which, id_t who) noexcept {
    return next_getpriority(which, static_cast<id_t>(of_kind(which, who)));
}
FERMATA_INTERPOSE int clock_getcpuclockid(pid_t process, clockid_t* clock) noexcept {
    return next_clock_getcpuclockid(real_id(process), clock);
}
FERMATA_INTERPOSE int timer_create(clockid_t clock, sigevent* event, timer_t* timer) noexcept {
    if (!ids_changed() || event == nullptr || event->sigev_notify != SIGEV_THREAD_ID)
        return next_timer_create(clock, event, timer);
    sigevent with_real = *event;
    with_real._sigev_un._tid = real_id(event->_sigev_un._tid);
    return next_timer_create(clock, &with_real, timer);
}
FERMATA_INTERPOSE long ptrace(__ptrace_request request, ...) noexcept {
    va_list list;
    va_start(list, request);
    const auto process = va_arg(list, pid_t);
    void* address = va_arg(list, void*);
    void* data = va_arg(list, void*);
    va_end(list);
    return next_ptrace(request, real_id(process), address, data);
}
