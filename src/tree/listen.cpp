#include "tree/listen.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/error.h"

namespace fermata::tree {
namespace {

constexpr int kBacklog = 4096;  // the kernel's limit, mostly

}  // namespace

Fd listen_tcp(uint16_t& port) {
    for (int family : {AF_INET6, AF_INET}) {
        Fd sock(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (!sock) continue;
        sockaddr_storage where{};
        socklen_t size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
        where.ss_family = static_cast<sa_family_t>(family);
        if (family == AF_INET6) {
            int off = 0;
            ::setsockopt(sock.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        }
        if (::bind(sock.get(), reinterpret_cast<sockaddr*>(&where), size) != 0 ||
            ::listen(sock.get(), kBacklog) != 0)
            continue;
        size = sizeof where;
        ::getsockname(sock.get(), reinterpret_cast<sockaddr*>(&where), &size);
        port = ntohs(family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(where).sin6_port
                                        : reinterpret_cast<sockaddr_in&>(where).sin_port);
        return sock;
    }
    fail_errno("cannot listen for the node daemons");
}

}  // namespace fermata::tree
