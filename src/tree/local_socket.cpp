#include "tree/local_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/error.h"

namespace fermata::tree {
namespace {

// Valid while `directory` is open.
sockaddr_un address(const Fd& directory, const std::string& name) {
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    std::string path = fmt::format("/proc/self/fd/{}/{}", directory.get(), name);
    if (path.size() >= sizeof where.sun_path) fail("socket name {} is too long", name);
    std::memcpy(where.sun_path, path.c_str(), path.size() + 1);
    return where;
}

}  // namespace

Fd listen_local(const std::string& directory, const std::string& name) {
    Fd dir = open_file(directory, O_PATH | O_DIRECTORY);
    Fd sock(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!sock) fail_errno("cannot create a socket");
    sockaddr_un where = address(dir, name);
    // fchmod before bind: Linux gives the socket file the mode of the socket's inode, so it is never open to
    // others.
    if (::fchmod(sock.get(), 0600) != 0 ||
        ::bind(sock.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) != 0 ||
        ::listen(sock.get(), 1024) != 0)
        fail_errno("cannot listen at {}/{}", directory, name);
    return sock;
}

Fd connect_local(const std::string& directory, const std::string& name) {
    Fd dir(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!dir) return {};
    Fd sock(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!sock) return {};
    sockaddr_un where = address(dir, name);
    int rc;
    do rc = ::connect(sock.get(), reinterpret_cast<sockaddr*>(&where), sizeof where);
    while (rc != 0 && errno == EINTR);
    if (rc != 0) {
        int code = errno;
        sock.reset();
        dir.reset();
        errno = code;
        return {};
    }
    return sock;
}

Peer peer_of(int socket) {
    ucred who{};
    socklen_t size = sizeof who;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
        fail_errno("cannot identify a socket's peer");
    return Peer{who.uid, who.pid};
}

void set_nonblocking(int fd, bool on) {
    int flags = ::fcntl(fd, F_GETFL);
    ::fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

}  // namespace fermata::tree
