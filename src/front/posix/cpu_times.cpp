// getrusage and times show what earlier lives of the program have used, too; clock_gettime and clock do so by
// our vDSO.
#include <errno.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include "front/core/recorded.h"
#include "front/posix/next.h"
#include "split/vdso/cpu_offsets.h"

namespace fermata::front::posix {
namespace {

constexpr int64_t kSecond = 1000000;  // us

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
// Where a copy has its rank's place its process has used less than the rank had told: us.
fermata::front::Upward user_time, system_time;

int64_t us_of(const timeval& time) { return time.tv_sec * kSecond + time.tv_usec; }
timeval time_of(int64_t us) { return {us / kSecond, us % kSecond}; }
void never_back(rusage* usage) {
    if (!fermata::front::keeps_log()) return;
    usage->ru_utime = time_of(user_time.next(us_of(usage->ru_utime)));
    usage->ru_stime = time_of(system_time.next(us_of(usage->ru_stime)));
}
void were_told(int64_t user, int64_t system) {
    if (!fermata::front::keeps_log()) return;
    user_time.told(user);
    system_time.told(system);
}

// Time that `who` has used in this life and before, in clock ticks. Not the sum of two counts of ticks: both
// are cut down to whole ones, so that the sum could go back by one.
struct Ticks {
    clock_t user, system;
};
Ticks ticks(__rusage_who_t who, FermataCpuValue user, FermataCpuValue system) {
    static const int64_t us = kSecond / sysconf(_SC_CLK_TCK);
    rusage usage = {};
    next_getrusage(who, &usage);
    add(usage.ru_utime, more(user));
    add(usage.ru_stime, more(system));
    if (who == RUSAGE_SELF) never_back(&usage);
    return {us_of(usage.ru_utime) / us, us_of(usage.ru_stime) / us};
}

int usage_now(__rusage_who_t who, rusage* usage) {
    int result = next_getrusage(who, usage);
    if (result != 0) return result;
    if (who == RUSAGE_SELF) {
        add(usage->ru_utime, more(FERMATA_CPU_USER));
        add(usage->ru_stime, more(FERMATA_CPU_SYSTEM));
        never_back(usage);
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

clock_t times_now(tms* used) {
    clock_t now = next_times(used);
    if (used == nullptr || now == static_cast<clock_t>(-1)) return now;
    Ticks own = ticks(RUSAGE_SELF, FERMATA_CPU_USER, FERMATA_CPU_SYSTEM);
    Ticks children = ticks(RUSAGE_CHILDREN, FERMATA_CPU_CHILD_USER, FERMATA_CPU_CHILD_SYSTEM);
    *used = {own.user, own.system, children.user, children.system};
    return now;
}

}  // namespace
}  // namespace fermata::front::posix

using namespace fermata::front::posix;
using fermata::front::recorded;

FERMATA_INTERPOSE int getrusage(__rusage_who_t who, rusage* usage) noexcept {
    struct {
        rusage usage;
        int result;
    } now{};
    recorded("getrusage", &now, sizeof now, [&] { now.result = usage_now(who, &now.usage); });
    if (now.result == 0 && who == RUSAGE_SELF)
        were_told(us_of(now.usage.ru_utime), us_of(now.usage.ru_stime));
    if (now.result == 0) *usage = now.usage;
    return now.result;
}

FERMATA_INTERPOSE clock_t times(tms* used) noexcept {
    struct {
        tms used;
        clock_t result;
    } now{};
    recorded("times", &now, sizeof now,
             [&] { now.result = times_now(used != nullptr ? &now.used : nullptr); });
    const int64_t tick = kSecond / sysconf(_SC_CLK_TCK);
    if (used != nullptr) were_told(now.used.tms_utime * tick, now.used.tms_stime * tick);
    if (used != nullptr) *used = now.used;
    return now.result;
}
