// ensure_layout: the kernel's search must go top-down from near the stack.
//
// Bottom-up layouts come from ADDR_COMPAT_LAYOUT (setarch -L), vm.legacy_va_layout=1, and, on kernels and
// architectures that still look at it, an unlimited stack. So the answer is probed, not computed.
#include <signal.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "split/address/raw.h"
#include "split/partition/partition.h"

namespace fermata::split {
namespace {

constexpr const char* kAgain = "FERMATA_LAYOUT_STACK";  // set over the re-exec: the application's own limit
constexpr rlim_t kFiniteStack = 8ull << 20;
constexpr rlim_t kLargeStack = 1ull << 40;  // the search starts below the room for the stack

rlim_t stack_limit = 8ull << 20;
uint64_t ignored;  // bit per signal

bool searches_from_the_top() {
    long at = raw_mmap(0, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    if (failed(at)) fail("cannot map one page: {}", std::strerror(int(-at)));
    raw_munmap(uint64_t(at), kPage);
    // Bottom-up starts at a third of the address space (0x2aaaaaaaa000), above the window too: look for the
    // top.
    return uint64_t(at) >= kUserTop / 2;
}

}  // namespace

void ensure_layout(char* const argv[]) {
    for (int s = 1; s < 32; ++s) {
        struct sigaction action;
        if (sigaction(s, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) ignored |= 1ull << s;
    }
    rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    stack_limit = limit.rlim_cur;
    const char* again = std::getenv(kAgain);
    if (again) {
        // Second life: the layout is decided, the limit may be what it was.
        stack_limit = std::strtoull(again, nullptr, 10);
        limit.rlim_cur = stack_limit;
        setrlimit(RLIMIT_STACK, &limit);
        unsetenv(kAgain);
    }
    unsigned long persona = static_cast<unsigned long>(personality(0xffffffff));
    if (searches_from_the_top()) return;
    if (again)
        fail("the kernel places memory bottom-up ({}): set sysctl vm.legacy_va_layout=0 on this node",
             "even with a finite stack limit");
    setenv(kAgain, std::to_string(limit.rlim_cur).c_str(), 1);
    if (limit.rlim_cur > kLargeStack) {
        limit.rlim_cur = kFiniteStack;
        setrlimit(RLIMIT_STACK, &limit);
    }
    if (persona & ADDR_COMPAT_LAYOUT) personality(persona & ~static_cast<unsigned long>(ADDR_COMPAT_LAYOUT));
    execv("/proc/self/exe", argv);
    fail("cannot execute {} again with a top-down memory layout: {}", argv[0], std::strerror(errno));
}

LayoutNotes layout_notes() { return {stack_limit, ignored}; }
void resume_layout(const LayoutNotes& notes) {
    stack_limit = notes.stack_limit;
    ignored = notes.ignored;
}

uint64_t application_stack_limit() { return stack_limit; }
bool ignored_at_start(int number) { return ignored >> number & 1; }

}  // namespace fermata::split
