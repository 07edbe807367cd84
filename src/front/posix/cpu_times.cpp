// getrusage and times show what earlier lives of the program have used, too; clock_gettime and clock do so by
// our vDSO.
#include <errno.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include "front/posix/next.h"
#include "split/vdso/cpu_offsets.h"

namespace fermata::front::posix {
namespace {

Next<int(int, rusage*)> next_getrusage{"getrusage"};
Next<clock_t(tms*)> next_times{"times"};

// Time that our vDSO adds to a clock; 0 without it, as the kernel knows no such clock.
int64_t more(int clock) {
    timespec value = {};
    int before = errno;
    if (clock_gettime(clock, &value) != 0) value = {};
    errno = before;
    return value.tv_sec * 1000000000 + value.tv_nsec;
}
int64_t more(FermataCpuValue value) { return more(FERMATA_CPU_CLOCK + static_cast<int>(value)); }

void add(timeval& time, int64_t ns) {
    int64_t all = time.tv_sec * 1000000 + time.tv_usec + ns / 1000;
    if (all < 0) all = 0;
    time.tv_sec = all / 1000000;
    time.tv_usec = all % 1000000;
}
// Time that `who` has used in this life and before, in clock ticks. Not the sum of two counts of ticks: both
// are cut down to whole ones, so that the sum could go back by one.
struct Ticks {
    clock_t user, system;
};
Ticks ticks(__rusage_who_t who, FermataCpuValue user, FermataCpuValue system) {
    static const int64_t us = 1000000 / sysconf(_SC_CLK_TCK);
    rusage usage = {};
    next_getrusage(who, &usage);
    add(usage.ru_utime, more(user));
    add(usage.ru_stime, more(system));
    return {(usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec) / us,
            (usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec) / us};
}

}  // namespace
}  // namespace fermata::front::posix

using namespace fermata::front::posix;

FERMATA_INTERPOSE int getrusage(__rusage_who_t who, rusage* usage) noexcept {
    int result = next_getrusage(who, usage);
    if (result != 0) return result;
    if (who == RUSAGE_SELF) {
        add(usage->ru_utime, more(FERMATA_CPU_USER));
        add(usage->ru_stime, more(FERMATA_CPU_SYSTEM));
        usage->ru_minflt += more(FERMATA_CPU_MINOR_FAULTS);
        usage->ru_majflt += more(FERMATA_CPU_MAJOR_FAULTS);
        usage->ru_inblock += more(FERMATA_CPU_BLOCKS_READ);
        usage->ru_oublock += more(FERMATA_CPU_BLOCKS_WRITTEN);
        usage->ru_nvcsw += more(FERMATA_CPU_SWITCHES);
        usage->ru_nivcsw += more(FERMATA_CPU_PREEMPTIONS);
    } else if (who == RUSAGE_THREAD) {
        add(usage->ru_utime, more(FERMATA_CPU_THREAD));  // user and system time are not told apart
    } else if (who == RUSAGE_CHILDREN) {
        add(usage->ru_utime, more(FERMATA_CPU_CHILD_USER));
        add(usage->ru_stime, more(FERMATA_CPU_CHILD_SYSTEM));
    }
    return 0;
}

FERMATA_INTERPOSE clock_t times(tms* used) noexcept {
    clock_t now = next_times(used);
    if (used == nullptr || now == static_cast<clock_t>(-1)) return now;
    Ticks own = ticks(RUSAGE_SELF, FERMATA_CPU_USER, FERMATA_CPU_SYSTEM);
    Ticks children = ticks(RUSAGE_CHILDREN, FERMATA_CPU_CHILD_USER, FERMATA_CPU_CHILD_SYSTEM);
    *used = {own.user, own.system, children.user, children.system};
    return now;
}
