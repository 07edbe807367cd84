// What epoll descriptors watch.
//
// The kernel's key of a watch is (open file, number at EPOLL_CTL_ADD). The number may have been closed since,
// or mean something else by now, while a duplicate keeps the file open: kcmp tells which description a watch
// is of, and at a restart the number means that description for the moment of the EPOLL_CTL_ADD.
#include <fmt/format.h>
#include <linux/kcmp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <map>

#include "split/process/descriptors/restore.h"
#include "split/threads/raw.h"

namespace fermata::split::process::descriptors {
namespace {

bool is(const Entry& entry) { return entry.is_anonymous("[eventpoll]"); }

// "watched" comes when all descriptions are known.
Json capture(Capture&, const Entry&) { return Json::object(); }

// Is `fd` the file of the watch number `which` among those of `epoll` at number `watched`? -1: the kernel
// does not say.
int is_of(int fd, int epoll, int watched, uint32_t which) {
    kcmp_epoll_slot slot = {static_cast<uint32_t>(epoll), static_cast<uint32_t>(watched), which};
    long pid = raw::getpid();
    long answer = raw::call(SYS_kcmp, pid, pid, KCMP_EPOLL_TFD, fd, raw::word(&slot));
    return answer < 0 ? -1 : answer == 0;
}

// The number that has what is watched: best the one by which it is.
const Entry* watched_one(const std::vector<Entry>& open, int epoll, int number, uint32_t which) {
    const Entry* found = nullptr;
    for (const Entry& one : open)
        if (one.fd == number && is_of(one.fd, epoll, number, which) != 0) found = &one;
    for (size_t i = 0; found == nullptr && i < open.size(); ++i)
        if (is_of(open[i].fd, epoll, number, which) == 1) found = &open[i];
    return found;
}

Json watches_of(Capture& capture, const Entry& epoll) {
    Json watched = Json::array();
    std::map<int, uint32_t> seen;
    for (size_t at = epoll.info.find("tfd:"); at != std::string::npos; at = epoll.info.find("tfd:", at + 1)) {
        int number = -1;
        unsigned events = 0;
        unsigned long long data = 0;
        if (std::sscanf(epoll.info.c_str() + at, "tfd: %d events: %x data: %llx", &number, &events, &data) !=
            3)
            continue;
        if (const Entry* of = watched_one(capture.entries, epoll.fd, number, seen[number]++))
            watched.push_back(Watch{number, events, data, of->description});
        else
            capture.warnings.push_back(fmt::format(
                "{}: epoll watches what was descriptor {} and is open in another process only: not "
                "watched after a restart",
                epoll.who(), number));
    }
    return watched;
}

void relate(Capture& capture) {
    for (Described& one : capture.all)
        if (one.operations->kind == Kind::epoll) one.saved["watched"] = watches_of(capture, *one.entry);
}

Fd make(Restore&, const Description&) { return Fd(epoll_create1(EPOLL_CLOEXEC)); }

// Numbers that mean another description than the watch are borrowed and closed: watches first, then the
// numbers.
void connect(Restore& restore, const Description& one, int epoll) {
    for (const Json& saved : one.saved.at("watched")) {
        auto watch = saved.get<Watch>();
        int fd = restore.made(watch.description);
        epoll_event event = {};
        event.events = watch.events;
        event.data.u64 = watch.data;
        // What the number means now.
        bool borrowed = restore.origin_of(watch.fd) != static_cast<int>(watch.description) && fd >= 0;
        if (borrowed) raw::call(SYS_dup2, fd, watch.fd);
        int result = epoll_ctl(epoll, EPOLL_CTL_ADD, watch.fd, &event);
        int error = errno;
        if (borrowed) raw::call(SYS_close, watch.fd);
        if (result != 0)
            restore.warnings.push_back(
                fmt::format("epoll no longer watches descriptor {}: {}", watch.fd, error_text(error)));
    }
}

}  // namespace

const Operations kEpoll = {.kind = Kind::epoll,
                           .is = is,
                           .capture = capture,
                           .relate = relate,
                           .make = make,
                           .connect = connect,
                           .sets_flags = true};

}  // namespace fermata::split::process::descriptors
