#include "base/cpus.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace fermata {
namespace {

struct CpuSet {  // 8192 processors: the kernel's largest configuration, where cpu_set_t ends at 1024
    unsigned char bits[1024] = {};
};

bool get(pid_t of, CpuSet& set) noexcept {
    return ::syscall(SYS_sched_getaffinity, of, sizeof set, &set) > 0;
}

}  // namespace

void use_processors_of(pid_t launcher) noexcept {
    CpuSet theirs, ours;
    if (launcher <= 1 || !get(launcher, theirs) || !get(0, ours)) return;
    for (size_t i = 0; i < sizeof ours.bits; ++i)
        if ((ours.bits[i] & ~theirs.bits[i]) != 0) return;
    ::syscall(SYS_sched_setaffinity, 0, sizeof theirs, &theirs);
}

}  // namespace fermata
