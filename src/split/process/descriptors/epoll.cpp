// Watches of epoll descriptors.
//
// The kernel's key of a watch is (open file, number at EPOLL_CTL_ADD). The number may have been closed since,
// or mean something else by now, while a duplicate keeps the file open: kcmp tells which description a watch
// is of, and at a restart the number means that description for the moment of the EPOLL_CTL_ADD.
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/kcmp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
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
    auto named = std::lower_bound(open.begin(), open.end(), number,
                                  [](const Entry& one, int fd) { return one.fd < fd; });
    if (named != open.end() && named->fd == number && is_of(number, epoll, number, which) != 0)
        found = &*named;
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

// A number that means another description than the watch, or nothing, means this one for a moment.
class Borrowed {
  public:
    void borrow(const Restore& restore, int number, int of) {
        number_ = number;
        flags_ = static_cast<int>(raw::call(SYS_fcntl, number, F_GETFD));
        if (flags_ >= 0) kept_ = restore.up(Fd(static_cast<int>(raw::call(SYS_dup, number))));
        raw::call(SYS_dup2, of, number);
    }
    ~Borrowed() {
        if (number_ < 0) return;
        if (kept_)
            raw::call(SYS_dup3, kept_.get(), number_, (flags_ & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0);
        else
            raw::call(SYS_close, number_);
    }

  private:
    int number_ = -1, flags_ = -1;
    Fd kept_;
};

void connect(Restore& restore, const Description& one, int epoll) {
    for (const Json& saved : one.saved.at("watched")) {
        auto watch = saved.get<Watch>();
        int fd = restore.made(watch.description);
        epoll_event event = {};
        event.events = watch.events;
        event.data.u64 = watch.data;
        // The number as it is now.
        const int origin = restore.origin_of(watch.fd);
        Borrowed number;
        if (origin != static_cast<int>(watch.description) && fd >= 0) number.borrow(restore, watch.fd, fd);
        int result = epoll_ctl(epoll, EPOLL_CTL_ADD, watch.fd, &event);
        int error = errno;
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
