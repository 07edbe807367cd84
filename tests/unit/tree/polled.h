// What tests of listening parts share: a connection to one, and a turn of what is polled.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "base/fd.h"

namespace fermata::tree {

// `flags`: SOCK_NONBLOCK, or 0.
inline Fd caller_of(uint16_t port, int flags) {
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int done = ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where);
    EXPECT_TRUE(done == 0 || errno == EINPROGRESS);  // never of one that blocks
    return fd;
}

// `otherwise`: ms that it waits at most.
template <class Polled>
void turn_of(Polled& polled, int otherwise) {
    std::vector<pollfd> fds;
    polled.add_to(fds);
    ::poll(fds.data(), fds.size(), polled.rest(otherwise));
    polled.serve(fds, 0);
}

}  // namespace fermata::tree
