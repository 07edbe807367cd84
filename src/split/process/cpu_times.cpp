// CPU time used: clocks and counters go on where they stood, they do not begin anew with the new process.
//
// Our vDSO adds the time that they show beyond the kernel's (vdso/cpu_offsets.h); the front adds it to
// getrusage and times (front/posix/cpu_times.cpp).
#include <sys/resource.h>
#include <time.h>

#include "base/error.h"
#include "split/address/mapped_elf.h"
#include "split/process/parts.h"
#include "split/threads/raw.h"
#include "split/threads/records.h"
#include "split/vdso/cpu_offsets.h"
#include "split/vdso/vdso.h"

namespace fermata::split::process {
namespace {

// Null without a split address space (unit tests).
FermataCpuOffsets* offsets() {
    uint64_t image = vdso_image();
    if (image == 0) return nullptr;
    uint64_t there = symbol_in_memory(image, "fermata_vdso_cpu");
    if (there == 0) fail("the vDSO of Fermata lacks fermata_vdso_cpu");
    return reinterpret_cast<FermataCpuOffsets*>(there);
}

int64_t clock_ns(int clock) {
    timespec now = {};
    raw::call(SYS_clock_gettime, clock, raw::word(&now));
    return now.tv_sec * 1000000000 + now.tv_nsec;
}
int clock_of_thread(int tid) { return static_cast<int>(static_cast<unsigned>(~tid) << 3 | 6u); }
int64_t ns(const timeval& time) { return time.tv_sec * 1000000000 + time.tv_usec * 1000; }

std::vector<int64_t> kernel_values() {
    rusage own = {}, children = {};
    raw::call(SYS_getrusage, RUSAGE_SELF, raw::word(&own));
    raw::call(SYS_getrusage, RUSAGE_CHILDREN, raw::word(&children));
    return {ns(own.ru_utime), ns(own.ru_stime), ns(children.ru_utime), ns(children.ru_stime), own.ru_minflt,
            own.ru_majflt,    own.ru_inblock,   own.ru_oublock,        own.ru_nvcsw,          own.ru_nivcsw};
}

}  // namespace

Json capture_cpu_times() {
    FermataCpuOffsets* now = offsets();
    if (now == nullptr) return nullptr;
    std::vector<int64_t> values = kernel_values();
    for (size_t i = 0; i < values.size(); ++i) values[i] += now->value[i];
    Json each = Json::array();
    threads::ThreadTable* all = threads::table();
    for (uint32_t i = 0; all != nullptr && i < all->high_water; ++i) {
        if (all->record[i].run != Run::stopped) continue;
        int tid = all->record[i].tid;
        int64_t used = clock_ns(clock_of_thread(tid));
        for (uint32_t k = 0; k < now->threads; ++k)
            if (now->thread[k].tid == tid) used += now->thread[k].ns;
        each.push_back({tid, used});
    }
    return {{"process", clock_ns(CLOCK_PROCESS_CPUTIME_ID) + now->process},
            {"values", values},
            {"threads", each}};
}

void restore_cpu_times(const Json& state) {
    FermataCpuOffsets* now = offsets();
    if (now == nullptr || state.is_null()) return;
    now->threads = 0;
    for (const Json& one : state.at("threads")) {
        int tid = threads::new_tid(one.at(0));
        if (tid == 0 || now->threads == std::size(now->thread)) continue;
        now->thread[now->threads++] = {tid, 0, one.at(1).get<int64_t>() - clock_ns(clock_of_thread(tid))};
    }
    std::vector<int64_t> values = kernel_values();
    for (size_t i = 0; i < values.size(); ++i)
        now->value[i] = state.at("values").at(i).get<int64_t>() - values[i];
    now->process = state.at("process").get<int64_t>() - clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    now->pid = raw::getpid();
}

}  // namespace fermata::split::process
