// A port on which the program listens must be had again at a restart, minutes or a second later. Remains of
// accepted connections (TIME_WAIT, for a minute) allow that only if the listening socket had SO_REUSEADDR
// when they were accepted: so it is set, behind the bind(), where it allows nothing else.
#include <errno.h>
#include <sys/socket.h>

#include "front/posix/next.h"

namespace fermata::front::posix {
namespace {
Next<int(int, int)> next_listen{"listen"};
}  // namespace
}  // namespace fermata::front::posix

FERMATA_INTERPOSE int listen(int fd, int backlog) noexcept {
    int domain = 0, before = errno, yes = 1;
    socklen_t size = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
        (domain == AF_INET || domain == AF_INET6))
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    errno = before;
    return fermata::front::posix::next_listen(fd, backlog);
}
