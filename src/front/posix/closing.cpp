// Programs that close every descriptor there is, whether they know of it or not (close_range, closefrom,
// loops over numbers or over /proc/self/fd), or take any number by dup2: the lower half keeps its own.
// Natively there are none at those numbers, which are above the limit: the answer is EBADF.
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "front/core/ids.h"
#include "front/core/sys.h"
#include "front/posix/answer.h"
#include "front/posix/next.h"
#include "front/posix/private_files.h"

namespace fermata::front::posix {
namespace {

constexpr unsigned kUnshare = 2,
                   kOnExec = 4;  // CLOSE_RANGE_UNSHARE, CLOSE_RANGE_CLOEXEC of linux/close_range.h

Next<int(int)> next_close{"close"};
Next<int(FILE*)> next_fclose{"fclose"};
Next<int(int, int)> next_dup2{"dup2"};
Next<int(int, int, int)> next_dup3{"dup3"};

__attribute__((constructor)) void find_all() {
    next_close.find();
    next_fclose.find();
    next_dup2.find();
    next_dup3.find();
}

// First number that the lower half may have; past all numbers in children, where everything is theirs.
unsigned first_lower() {
    const fermata::split::Bridge* b = bridge();
    if (b == nullptr || b->lower_owned == nullptr || real_pid() != b->process) return ~0u;
    return static_cast<unsigned>(b->first_lower);
}

bool lower_has(unsigned fd) {
    const fermata::split::Bridge* b = bridge();
    const unsigned at = fd - static_cast<unsigned>(b->first_lower);
    return at >= static_cast<unsigned>(b->lower_count) ||
           (__atomic_load_n(&b->lower_owned[at / 64], __ATOMIC_RELAXED) >> at % 64 & 1) != 0;
}

// Are these the lower half's: what a program would dup, and any number that it would take?
bool beyond(int from, int to) {
    const fermata::split::Bridge* b = bridge();
    if (__builtin_expect(
            b == nullptr || b->lower_owned == nullptr || (from < b->first_lower && to < b->first_lower), 1))
        return false;
    const unsigned lower = first_lower();
    return static_cast<unsigned>(to) >= lower ||
           (static_cast<unsigned>(from) >= lower && lower_has(static_cast<unsigned>(from)));
}

}  // namespace
}  // namespace fermata::front::posix

using namespace fermata::front;
using namespace fermata::front::posix;

FERMATA_INTERPOSE int close(int fd) {
    const fermata::split::Bridge* b = bridge();
    if (__builtin_expect(b != nullptr && b->lower_owned != nullptr && fd >= b->first_lower, 0) &&
        static_cast<unsigned>(fd) >= first_lower() && lower_has(static_cast<unsigned>(fd))) {
        errno = EBADF;
        return -1;
    }
    told_close(fd);
    return next_close(fd);
}

FERMATA_INTERPOSE int fclose(FILE* file) {
    if (keeps_log() && is_told()) {
        fflush(file);
        told_close(fileno(file));
    }
    return next_fclose(file);
}

FERMATA_INTERPOSE int dup2(int from, int to) noexcept {
    if (!beyond(from, to)) return next_dup2(from, to);
    errno = EBADF;
    return -1;
}

FERMATA_INTERPOSE int dup3(int from, int to, int flags) noexcept {
    if (!beyond(from, to)) return next_dup3(from, to, flags);
    errno = EBADF;
    return -1;
}

FERMATA_INTERPOSE int close_range(unsigned first, unsigned last, int flags) noexcept {
    const unsigned lower = first_lower();
    if (first > last || last < lower || (static_cast<unsigned>(flags) & ~(kUnshare | kOnExec)) != 0)
        return static_cast<int>(answer(fermata::sys(SYS_close_range, first, last, flags)));
    // The agent must go on seeing what the program has open: no table of its own for the caller.
    flags &= ~static_cast<int>(kUnshare);
    // Descriptors of the lower half are closed on exec anyway.
    if ((static_cast<unsigned>(flags) & kOnExec) != 0)
        return static_cast<int>(answer(fermata::sys(SYS_close_range, first, last, flags)));
    const long rc = first < lower ? answer(fermata::sys(SYS_close_range, first, lower - 1, 0)) : 0;
    rlimit limit{};
    // Above the line are only those of a program that has raised its limit by the raw system call.
    if (rc != 0 || fermata::failed(fermata::sys(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit)) ||
        limit.rlim_cur <= lower)
        return static_cast<int>(rc);
    const unsigned end = limit.rlim_cur <= last ? static_cast<unsigned>(limit.rlim_cur) : last + 1;
    for (unsigned fd = first > lower ? first : lower; fd < end; fd++)
        if (!lower_has(fd)) fermata::sys(SYS_close, fd);
    return 0;
}

FERMATA_INTERPOSE void closefrom(int first) noexcept {
    const int kept = errno;
    if (close_range(first > 0 ? static_cast<unsigned>(first) : 0, ~0u, 0) != 0) {
        for (int fd = first > 0 ? first : 0, end = getdtablesize(); fd < end; fd++)  // before Linux 5.9
            close(fd);
        errno = kept;
    }
}
