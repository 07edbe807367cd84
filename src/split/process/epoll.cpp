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

#include "split/process/parts.h"
#include "split/threads/raw.h"

namespace fermata::split::process {
namespace {

constexpr int kNobody = -1;

// Is `fd` the file of the watch number `which` among those of `epoll` at number `watched`? -1: the kernel
// does not say.
int is_of(int fd, int epoll, int watched, uint32_t which) {
    kcmp_epoll_slot slot = {static_cast<uint32_t>(epoll), static_cast<uint32_t>(watched), which};
    long pid = raw::getpid();
    long answer = raw::call(SYS_kcmp, pid, pid, KCMP_EPOLL_TFD, fd, raw::word(&slot));
    return answer < 0 ? -1 : answer == 0;
}

}  // namespace

// [[number, events, data, description], …]
Json capture_epoll(int epoll, const std::string& info, const std::vector<OpenDescriptor>& open,
                   Lines& warnings) {
    Json watched = Json::array();
    std::map<int, uint32_t> seen;
    for (size_t at = info.find("tfd:"); at != std::string::npos; at = info.find("tfd:", at + 1)) {
        int number = -1;
        unsigned events = 0;
        unsigned long long data = 0;
        if (std::sscanf(info.c_str() + at, "tfd: %d events: %x data: %llx", &number, &events, &data) != 3)
            continue;
        uint32_t which = seen[number]++;
        int of = kNobody;
        for (const OpenDescriptor& one : open)
            if (one.fd == number && is_of(one.fd, epoll, number, which) != 0)
                of = static_cast<int>(one.description);
        for (size_t i = 0; of == kNobody && i < open.size(); ++i)
            if (is_of(open[i].fd, epoll, number, which) == 1) of = static_cast<int>(open[i].description);
        if (of == kNobody)
            warnings.push_back(
                fmt::format("descriptor {}: epoll watches what was descriptor {} and is open in another "
                            "process only: not watched after a restart",
                            epoll, number));
        else
            watched.push_back({number, events, data, of});
    }
    return watched;
}

void watch_again(int epoll, const Json& watched, const std::vector<int>& made, const OriginOf& origin,
                 Lines& warnings) {
    for (const Json& one : watched) {
        int number = one.at(0), of = one.at(3);
        int is = origin(number);  // what the number means now
        int fd = made.at(static_cast<size_t>(of));
        epoll_event event = {};
        event.events = one.at(1);
        event.data.u64 = one.at(2);
        bool borrowed = is != of && fd >= 0;
        if (borrowed) raw::call(SYS_dup2, fd, number);
        int result = epoll_ctl(epoll, EPOLL_CTL_ADD, number, &event);
        int error = errno;
        if (borrowed) raw::call(SYS_close, number);
        if (result != 0)
            warnings.push_back(
                fmt::format("epoll no longer watches descriptor {}: {}", number, error_text(error)));
    }
}

}  // namespace fermata::split::process
