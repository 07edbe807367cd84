// Counters of events (eventfd).
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "split/process/descriptors/operations.h"
#include "split/threads/raw.h"

namespace fermata::split::process::descriptors {
namespace {

bool is(const Entry& entry) { return entry.is_anonymous("[eventfd]"); }

// Does a read take one from this eventfd's `count`, rather than all? Asked of the descriptor itself: the
// count is as before when this returns, but for children that take some of it meanwhile.
bool tried_to_be_semaphore(int fd, uint64_t count) {
    auto add = [&](uint64_t more) { raw::call(SYS_write, fd, raw::word(&more), sizeof more); };
    auto take = [&] {
        uint64_t got = 0;
        iovec into{&got, sizeof got};
        raw::call(SYS_preadv2, fd, raw::word(&into), 1, -1, 0, RWF_NOWAIT);
        return got;
    };
    uint64_t more = count < 2 ? 2 : 0;
    if (more != 0) add(more);
    uint64_t got = take();
    bool semaphore = got == 1;
    if (semaphore && more != 0)
        take();
    else if (semaphore)
        add(1);
    else if (got > more)
        add(got - more);
    return semaphore;
}

Json capture(Capture&, const Entry& entry) {
    uint64_t count = std::strtoull(field(entry.info, "eventfd-count").c_str(), nullptr, 16);
    std::string semaphore = field(entry.info, "eventfd-semaphore");
    // (Linux 6.1 does not say.)
    return {{"count", count},
            {"semaphore", semaphore.empty() ? tried_to_be_semaphore(entry.fd, count) : semaphore != "0"}};
}

Fd make(Restore&, const Description& one) {
    int semaphore = one.saved.at("semaphore").get<bool>() ? EFD_SEMAPHORE : 0;
    Fd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | semaphore));
    auto count = one.saved.at("count").get<uint64_t>();
    if (fd && count != 0 && write(fd.get(), &count, sizeof count) != sizeof count)
        throw Refused{one.who + ": the count " + std::to_string(count) +
                      " of its eventfd cannot be set again: " + error_text(errno)};
    if (fd && (one.flags & O_NONBLOCK) == 0) fcntl(fd.get(), F_SETFL, 0);
    return fd;
}

}  // namespace

const Operations kEventfd = {.kind = Kind::eventfd, .is = is, .capture = capture, .make = make};

}  // namespace fermata::split::process::descriptors
