// Crowd watches many descriptors of which few have something to say at a time. One turn of a daemon costs
// what those few cost: poll asks every descriptor each time, which was a third of what a daemon does in a
// checkpoint with 100 ranks.
#pragma once

#include <sys/epoll.h>

#include <vector>

#include "base/fd.h"

namespace fermata::noded {

class Crowd {
  public:
    // Throws Error.
    Crowd();
    // For poll: POLLIN while somebody is ready.
    int fd() const { return epoll_.get(); }
    // Watches a descriptor for reading; `who` comes back in ready(). False, with errno: the system has no
    // room for one more.
    bool add(int fd, void* who) { return change(EPOLL_CTL_ADD, fd, who, false); }
    void watch_writing(int fd, void* who, bool too) { change(EPOLL_CTL_MOD, fd, who, too); }
    // To be said before it is closed: a process that is just being started may have it, too.
    void forget(int fd) noexcept;

    struct One {
        void* who;
        short revents;  // as poll has it
    };
    // Those that are ready, not all where they are very many: the others come next time.
    const std::vector<One>& ready();

  private:
    bool change(int what, int fd, void* who, bool writing);
    Fd epoll_;
    std::vector<epoll_event> events_;
    std::vector<One> ready_;
};

}  // namespace fermata::noded
