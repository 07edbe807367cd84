#include "noded/crowd.h"

#include <poll.h>

#include "base/error.h"

namespace fermata::noded {
namespace {

constexpr size_t kAtOnce = 256;

// Linux has the same bits for both.
static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLHUP == POLLHUP && EPOLLERR == POLLERR);

}  // namespace

Crowd::Crowd() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), events_(kAtOnce) {
    if (!epoll_) fail_errno("cannot watch the ranks' connections");
}

bool Crowd::change(int what, int fd, void* who, bool writing) {
    epoll_event wanted{writing ? EPOLLIN | EPOLLOUT : uint32_t{EPOLLIN}, {.ptr = who}};
    return ::epoll_ctl(epoll_.get(), what, fd, &wanted) == 0;
}

void Crowd::forget(int fd) noexcept { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

const std::vector<Crowd::One>& Crowd::ready() {
    ready_.clear();
    const int count = ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), 0);
    for (int i = 0; i < count; ++i) {
        const epoll_event& one = events_[static_cast<size_t>(i)];
        ready_.push_back({one.data.ptr, static_cast<short>(one.events)});
    }
    return ready_;
}

}  // namespace fermata::noded
