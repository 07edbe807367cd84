// Processes that the program makes and waits for. Their numbers are the kernel's, unless the program, or
// something it knows, had such a number before a restart: then they are shown under another one
// (split/ids/table.h).
#include <errno.h>
#include <pty.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "front/core/ended.h"
#include "front/core/ids.h"
#include "front/posix/answer.h"
#include "front/posix/next.h"
#include "front/posix/sender.h"

namespace fermata::front::identity {
namespace {

using posix::answer;
using posix::Next;

Next<pid_t()> next_fork{"fork"};
Next<pid_t()> next_plain_fork{"_Fork"};
Next<int(int*, char*, const termios*, const winsize*)> next_forkpty{"forkpty"};
Next<int(int (*)(void*), void*, int, void*, void*, void*, void*)> next_clone{"clone"};
Next<pid_t(pid_t, int*, int, rusage*)> next_wait4{"wait4"};
Next<int(idtype_t, id_t, siginfo_t*, int)> next_waitid{"waitid"};
Next<int(FILE*)> next_pclose{"pclose"};

__attribute__((constructor)) void find_all() {
    next_fork.find();
    next_plain_fork.find();
    next_forkpty.find();
    next_clone.find();
    next_wait4.find();
    next_waitid.find();
    next_pclose.find();
}

// The kernel's number of the child behind a stream of popen(), for which libc waits by a call of its own: it
// stands behind FILE and a pointer (glibc 2.36, libio/iopopen.c: the size of FILE is part of the ABI).
pid_t child_of(FILE* stream) {
    pid_t child;
    __builtin_memcpy(&child, reinterpret_cast<char*>(stream) + sizeof(FILE) + sizeof(void*), sizeof child);
    return child;
}

pid_t shown_of_ended(pid_t real) {
    for (const split::EndedChild& child : ended.child)
        if (child.state == split::EndedChild::kWaits && child.real == real) return child.pid;
    return 0;
}

}  // namespace

extern "C" __attribute__((used, visibility("hidden"))) pid_t fermata_shown_child(pid_t child) noexcept {
    return shown_id(child);
}
extern "C" __attribute__((used, visibility("hidden"))) long fermata_no_child(long result) noexcept {
    return answer(result);
}

}  // namespace fermata::front::identity

using namespace fermata::front;
using namespace fermata::front::identity;

FERMATA_INTERPOSE pid_t fork() noexcept { return shown_id(next_fork()); }
extern "C" __attribute__((alias("fork"), visibility("default"))) pid_t __fork() noexcept;
FERMATA_INTERPOSE pid_t _Fork() noexcept { return shown_id(next_plain_fork()); }
FERMATA_INTERPOSE int forkpty(int* end, char* name, const termios* settings, const winsize* size) noexcept {
    return shown_id(next_forkpty(end, name, settings, size));
}

// The child returns from here first, on the parent's stack: the return address waits in a register, as in
// libc's (glibc 2.36, sysdeps/unix/sysv/linux/x86_64/vfork.S).
extern "C" __attribute__((naked, visibility("default"), returns_twice, nothrow)) pid_t vfork() noexcept {
    asm("pop %%rdi\n\t"
        "mov %0, %%eax\n\t"
        "syscall\n\t"
        "push %%rdi\n\t"
        "cmp $-4096, %%rax\n\t"
        "ja 1f\n\t"
        "test %%eax, %%eax\n\t"
        "jz 2f\n\t"
        "mov %%eax, %%edi\n\t"
        "jmp fermata_shown_child\n"
        "1:\n\t"
        "mov %%rax, %%rdi\n\t"
        "jmp fermata_no_child\n"
        "2:\n\t"
        "ret"
        :
        : "i"(SYS_vfork));
}
extern "C" __attribute__((alias("vfork"), visibility("default"), returns_twice)) pid_t __vfork() noexcept;

FERMATA_INTERPOSE int clone(int (*start)(void*), void* stack, int flags, void* argument, ...) noexcept {
    va_list list;
    va_start(list, argument);
    auto* parents = va_arg(list, pid_t*);
    void* tls = va_arg(list, void*);
    void* childs = va_arg(list, void*);
    va_end(list);
    const int id = shown_id(next_clone(start, stack, flags, argument, parents, tls, childs));
    if (id > 0 && ids_changed() && (flags & CLONE_PARENT_SETTID) != 0) *parents = id;
    return id;
}

// ECHILD is also what a thread gets that was inside when another process took this one's place.
FERMATA_INTERPOSE pid_t wait4(pid_t target, int* status, int options, rusage* usage) noexcept {
    if (const pid_t child = ended_by_wait4(target, status, usage)) return child;
    const pid_t child = shown_id(next_wait4(real_target(target), status, options, usage));
    if (child != -1 || errno != ECHILD) return child;
    const pid_t meanwhile = ended_by_wait4(target, status, usage);
    return meanwhile ? meanwhile : child;
}
FERMATA_INTERPOSE pid_t wait3(int* status, int options, rusage* usage) noexcept {
    return wait4(-1, status, options, usage);
}
FERMATA_INTERPOSE pid_t waitpid(pid_t target, int* status, int options) {
    return wait4(target, status, options, nullptr);
}
FERMATA_INTERPOSE pid_t wait(int* status) { return wait4(-1, status, 0, nullptr); }
FERMATA_INTERPOSE int waitid(idtype_t type, id_t id, siginfo_t* info, int options) {
    const auto number = static_cast<int>(id);
    if (ended_by_waitid(type, number, info, options, nullptr)) return 0;
    if (type == P_PID) id = static_cast<id_t>(real_id(number));
    if (type == P_PGID) id = static_cast<id_t>(real_group(number));
    const int result = next_waitid(type, id, info, options);
    if (result != 0 && errno == ECHILD && ended_by_waitid(type, number, info, options, nullptr)) return 0;
    if (result == 0 && info != nullptr && info->si_signo == SIGCHLD) posix::show_sender(SIGCHLD, info);
    return result;
}
FERMATA_INTERPOSE int pclose(FILE* stream) {
    const pid_t real = asks_for_ended() ? child_of(stream) : 0;
    const int result = next_pclose(stream);
    int status = 0;
    if (result != -1 || errno != ECHILD || real == 0) return result;
    const pid_t child = shown_of_ended(real);
    return child != 0 && ended_by_wait4(child, &status, nullptr) == child ? status : result;
}
