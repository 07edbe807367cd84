// What the lower executable's functions on sockets do and count; this program is built with them.
#include "split/fds/connections.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string>
#include <vector>

namespace fermata::split {
namespace {

struct Counted {
    uint32_t lost = connections().lost, broken = connections().broken;
    uint32_t now() const { return connections().lost - lost; }
};

sockaddr_in loopback() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

// Two ends of a TCP connection.
struct Connection {
    int ends[2];
    Connection() {
        sockaddr_in address = loopback();
        socklen_t size = sizeof address;
        const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
        ::bind(listener, reinterpret_cast<sockaddr*>(&address), size);
        ::listen(listener, 1);
        ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
        ends[0] = ::socket(AF_INET, SOCK_STREAM, 0);
        EXPECT_EQ(::connect(ends[0], reinterpret_cast<sockaddr*>(&address), size), 0);
        is_new(ends[0]);
        ends[1] = ::accept(listener, nullptr, nullptr);
        ::close(listener);
    }
};

// A port where nobody listens.
sockaddr_in nobody() {
    sockaddr_in address = loopback();
    socklen_t size = sizeof address;
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    ::bind(socket, reinterpret_cast<sockaddr*>(&address), size);
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    ::close(socket);
    return address;
}

TEST(Connections, AnEndIsCountedAndRaisesNoSignal) {
    Connection connection;
    char byte = 'x';
    const Counted counted;
    EXPECT_EQ(::write(connection.ends[0], &byte, 1), 1);
    EXPECT_EQ(::recv(connection.ends[1], &byte, 1, 0), 1);
    EXPECT_EQ(counted.now(), 0u);
    ::close(connection.ends[1]);
    EXPECT_EQ(::recv(connection.ends[0], &byte, 1, 0), 0);
    EXPECT_EQ(counted.now(), 1u);
    EXPECT_EQ(::write(connection.ends[0], &byte, 1), 1) << "the other end's answer comes behind it";
    pollfd hears{connection.ends[0], POLLERR, 0};
    ::poll(&hears, 1, 10000);
    const iovec part{&byte, 1};
    EXPECT_EQ(::writev(connection.ends[0], &part, 1), -1);
    EXPECT_EQ(errno, EPIPE);
    EXPECT_EQ(::send(connection.ends[0], &byte, 1, 0), -1);
    EXPECT_EQ(counted.now(), 1u) << "it is one connection";
    EXPECT_EQ(connections().broken, counted.broken);
    ::close(connection.ends[0]);
}

TEST(Connections, AnEndIsHiddenUntilAllRanksAreSeenToLive) {
    Connection connection, another;
    char byte = 'x';
    const Counted counted;
    hide_ends(true);
    EXPECT_EQ(::write(connection.ends[1], &byte, 1), 1);
    for (Connection* one : {&connection, &another}) {
        ::fcntl(one->ends[0], F_SETFL, O_NONBLOCK);
        ::close(one->ends[1]);
    }
    EXPECT_EQ(::recv(connection.ends[0], &byte, 1, 0), 1) << "what has come is read";
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(::recv(connection.ends[0], &byte, 1, 0), -1);
        EXPECT_EQ(errno, EAGAIN);
        EXPECT_EQ(counted.now(), 1u);
    }
    connections().cleared = connections().lost;
    EXPECT_EQ(::recv(connection.ends[0], &byte, 1, 0), 0);
    EXPECT_EQ(::read(another.ends[0], &byte, 1), -1) << "nobody has seen to this one";
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(counted.now(), 2u);
    EXPECT_EQ(::recv(connection.ends[0], &byte, 1, 0), -1) << "and who knows whose end it was";
    ::fcntl(another.ends[0], F_SETFL, 0);
    EXPECT_EQ(::read(another.ends[0], &byte, 1), 0) << "or it would wait for ever";
    hide_ends(false);
    EXPECT_EQ(::recv(connection.ends[0], &byte, 1, 0), 0);
    for (Connection* one : {&connection, &another}) ::close(one->ends[0]);
}

TEST(Connections, InHandshakesAnEndIsToldAndWhatIsSentIsGone) {
    Connection connection;
    const Counted counted;
    const int fd = connection.ends[0];
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    char bytes[8] = {};
    hide_ends(true, false);
    EXPECT_EQ(::recv(fd, bytes, 8, 0), -1) << "nothing has come yet";
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(::send(fd, bytes, 8, 0), 8);
    EXPECT_EQ(counted.now(), 0u);
    ::close(connection.ends[1]);  // with bytes that nobody has read
    pollfd ends{fd, POLLIN, 0};
    ::poll(&ends, 1, 10000);
    EXPECT_LE(::recv(fd, bytes, 8, 0), 0);
    EXPECT_NE(errno, EAGAIN);
    EXPECT_EQ(counted.now(), 1u);
    EXPECT_EQ(::send(fd, bytes, 8, 0), 8);
    EXPECT_EQ(::write(fd, bytes, 8), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(::read(fd, bytes, 8), -1);
    EXPECT_EQ(errno, EAGAIN);
    hide_ends(true);
    EXPECT_EQ(::send(fd, bytes, 8, 0), -1);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(::recv(fd, bytes, 8, 0), -1);
    EXPECT_EQ(errno, EAGAIN);
    hide_ends(false);
    EXPECT_EQ(::send(fd, bytes, 8, 0), -1);
    EXPECT_EQ(errno, EPIPE);
    ::close(fd);
}

TEST(Connections, WhoWaitsForDescriptorsSeesNoHiddenEnd) {
    Connection connection, another;
    const Counted counted;
    const int set = ::epoll_create1(0);
    for (int fd : {connection.ends[0], another.ends[0]}) {
        ::fcntl(fd, F_SETFL, O_NONBLOCK);
        epoll_event one{EPOLLIN, {}};
        one.data.fd = fd;
        ::epoll_ctl(set, EPOLL_CTL_ADD, fd, &one);
    }
    epoll_event seen[2];
    EXPECT_EQ(::epoll_wait(set, seen, 2, 0), 0);
    ::close(connection.ends[1]);
    hide_ends(true);
    EXPECT_EQ(::epoll_wait(set, seen, 2, -1), 1) << "nobody has asked for it";
    char byte;
    EXPECT_EQ(::recv(connection.ends[0], &byte, 1, 0), -1);
    EXPECT_EQ(::epoll_wait(set, seen, 2, 0), 0);
    EXPECT_EQ(::epoll_wait(set, seen, 2, 10000), -1) << "a call that waits may come back";
    EXPECT_EQ(errno, EINTR);
    EXPECT_EQ(::send(another.ends[1], "x", 1, 0), 1);
    EXPECT_EQ(::epoll_wait(set, seen, 2, -1), 1);
    EXPECT_EQ(seen[0].data.fd, another.ends[0]);
    connections().cleared = connections().lost;
    EXPECT_EQ(::epoll_wait(set, seen, 2, -1), 2) << "it was no rank's";
    EXPECT_EQ(counted.now(), 1u);
    // Descriptors that were noted by an address are left alone, and one of the same number is another.
    connections().cleared = connections().lost - 1;
    epoll_event one{EPOLLIN, {}};
    one.data.ptr = &connection;
    ::epoll_ctl(set, EPOLL_CTL_MOD, connection.ends[0], &one);
    EXPECT_EQ(::epoll_wait(set, seen, 2, -1), 2);
    one.data.u64 = static_cast<uint64_t>(connection.ends[0]);
    ::epoll_ctl(set, EPOLL_CTL_MOD, connection.ends[0], &one);
    EXPECT_EQ(::epoll_wait(set, seen, 2, -1), 1);
    is_new(connection.ends[0]);
    EXPECT_EQ(::epoll_wait(set, seen, 2, -1), 2);
    hide_ends(false);
    for (int fd : {connection.ends[0], another.ends[0], another.ends[1], set}) ::close(fd);
}

TEST(Connections, MemoryOfWhoHasDiedIsAsIfItHadBeenTaken) {
    const Counted counted;
    const pid_t dead = ::fork();
    if (dead == 0) ::_exit(0);
    siginfo_t none{};
    ::waitid(P_PID, static_cast<id_t>(dead), &none, WEXITED | WNOWAIT);
    char here[24] = {};
    const iovec to[] = {{here, 16}, {here + 16, 8}}, from{here, 24};
    EXPECT_EQ(::process_vm_readv(dead, to, 2, &from, 1, 0), -1);
    EXPECT_EQ(errno, ESRCH);
    EXPECT_EQ(counted.now(), 1u);
    hide_ends(true);
    EXPECT_EQ(::process_vm_readv(dead, to, 2, &from, 1, 0), 24);
    EXPECT_EQ(::process_vm_writev(dead, to, 1, &from, 1, 0), 16);
    EXPECT_EQ(counted.now(), 3u);
    EXPECT_EQ(::process_vm_readv(::getpid(), to, 2, nullptr, 0, 0), 0) << "as the kernel says";
    hide_ends(false);
    ::waitpid(dead, nullptr, 0);
}

TEST(Connections, SoIsOneThatNobodyTakes) {
    const sockaddr_in address = nobody();
    const auto* to = reinterpret_cast<const sockaddr*>(&address);
    const Counted counted;
    int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    is_new(socket);
    EXPECT_EQ(::connect(socket, to, sizeof address), -1);
    EXPECT_EQ(errno, ECONNREFUSED);
    EXPECT_EQ(counted.now(), 1u);
    ::close(socket);
    socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    is_new(socket);
    if (::connect(socket, to, sizeof address) == -1 && errno == EINPROGRESS) {
        pollfd ends{socket, POLLOUT, 0};
        ::poll(&ends, 1, 10000);
        int error = 0;
        socklen_t size = sizeof error;
        EXPECT_EQ(::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size), 0);
        EXPECT_EQ(error, ECONNREFUSED);
    }
    EXPECT_EQ(counted.now(), 2u);
    ::close(socket);
}

TEST(Connections, AnAddressThatLeadsNowhereBreaksNoNetwork) {
    const Counted counted;
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    is_new(socket);
    note_refusal(socket, -ENETUNREACH);
    EXPECT_EQ(counted.now(), 1u);
    EXPECT_EQ(connections().broken, counted.broken);
    EXPECT_EQ(end_as_told(socket, -ENETUNREACH, 0), -ENETUNREACH);
    EXPECT_EQ(connections().broken, counted.broken) << "it is counted already";
    is_new(socket);
    end_as_told(socket, -ENETUNREACH, 0);
    EXPECT_EQ(connections().broken, counted.broken + 1) << "of one that was there";
    connections().broken = counted.broken;
    ::close(socket);
}

TEST(Connections, ADescriptorThatConnectsAgainHasAnotherEnd) {
    const sockaddr_in address = nobody();
    const Counted counted;
    sockaddr_in there = loopback();
    socklen_t size = sizeof there;
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    ::bind(listener, reinterpret_cast<sockaddr*>(&there), size);
    ::listen(listener, 1);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&there), &size);
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    is_new(socket);
    EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), -1);
    EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&there), size), 0);
    ::close(::accept(listener, nullptr, nullptr));
    char byte;
    EXPECT_EQ(::recv(socket, &byte, 1, 0), 0);
    EXPECT_EQ(counted.now(), 2u);
    for (int one : {socket, listener}) ::close(one);
}

TEST(Connections, NothingElseIs) {
    const Counted counted;
    char byte = 0;
    Connection connection;
    ::fcntl(connection.ends[0], F_SETFL, O_NONBLOCK);
    EXPECT_EQ(::recv(connection.ends[0], &byte, 1, 0), -1) << "nothing has come yet";
    int pair[2];
    ASSERT_EQ(::pipe(pair), 0);
    ::close(pair[1]);
    EXPECT_EQ(::read(pair[0], &byte, 1), 0);
    ::close(pair[0]);
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    ::close(pair[1]);
    EXPECT_EQ(::read(pair[0], &byte, 1), 0);
    EXPECT_EQ(::write(pair[0], &byte, 1), -1);
    EXPECT_EQ(errno, EPIPE);
    ::close(pair[0]);
    sockaddr_in address = loopback();
    socklen_t size = sizeof address;
    const int datagrams = ::socket(AF_INET, SOCK_DGRAM, 0);
    ::bind(datagrams, reinterpret_cast<sockaddr*>(&address), size);
    ::getsockname(datagrams, reinterpret_cast<sockaddr*>(&address), &size);
    EXPECT_EQ(::sendto(datagrams, "", 0, 0, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::recv(datagrams, &byte, 1, 0), 0) << "an empty one";
    ::close(datagrams);
    EXPECT_EQ(::read(-1, &byte, 1), -1);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(counted.now(), 0u);
    for (int end : connection.ends) ::close(end);
}

TEST(Connections, FilesAreWrittenAsEver) {
    char name[] = "/tmp/fermata-connections-XXXXXX";
    const int file = ::mkstemp(name);
    ::unlink(name);
    EXPECT_EQ(::write(file, "abc", 3), 3);
    char d = 'd', e = 'e';
    const iovec parts[] = {{&d, 1}, {&e, 1}};
    EXPECT_EQ(::writev(file, parts, 2), 2);
    std::vector<iovec> many(IOV_MAX + 1, iovec{&d, 1});
    EXPECT_EQ(::writev(file, many.data(), int(many.size())), -1);
    EXPECT_EQ(errno, EINVAL);
    Connection connection;
    EXPECT_EQ(::writev(connection.ends[0], many.data(), int(many.size())), -1);
    EXPECT_EQ(errno, EINVAL) << "and not what sendmsg says";
    std::string all(9, '\0');
    EXPECT_EQ(::lseek(file, 0, SEEK_SET), 0);
    EXPECT_EQ(::read(file, all.data(), all.size()), 5);
    EXPECT_EQ(all.substr(0, 5), "abcde");
    ::close(file);
    for (int end : connection.ends) ::close(end);
}

}  // namespace
}  // namespace fermata::split
