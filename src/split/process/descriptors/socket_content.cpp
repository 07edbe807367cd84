#include "split/process/descriptors/socket_content.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace fermata::split::process::descriptors {

namespace {

using Bytes = std::vector<uint8_t>;

// Messages after which reading ends: recv() says 0 then, again and again.
bool ends_here(int fd) {
    pollfd one = {fd, POLLRDHUP, 0};
    return poll(&one, 1, 0) == 1 && (one.revents & POLLRDHUP) != 0;
}

Json stream_in(int fd) {
    int waiting = 0;
    if (ioctl(fd, FIONREAD, &waiting) != 0)
        fail("descriptor {}: how much waits in the socket cannot be told: {}", fd, error_text(errno));
    if (waiting <= 0) return Json::array();
    Bytes bytes(static_cast<size_t>(waiting));
    ssize_t got = recv(fd, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
    if (got != waiting)
        fail(
            "descriptor {}: only {} of the {} bytes that wait in the socket can be saved: checkpoint again "
            "when less waits",
            fd, std::max<ssize_t>(got, 0), waiting);
    return Json::array({Json::binary(std::move(bytes))});
}

// Peeks one message after the other.
Json messages_in(int fd, bool connected) {
    Json messages = Json::array();
    int total = 0, seen = 0;
    if (connected && ioctl(fd, FIONREAD, &total) != 0)
        fail("descriptor {}: how much waits in the socket cannot be told: {}", fd, error_text(errno));
    Bytes buffer(1 << 20);
    for (;;) {
        ssize_t got = recv(fd, buffer.data(), buffer.size(), MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC);
        if (got < 0 && errno != EAGAIN)
            fail("descriptor {}: what waits in the socket cannot be looked at: {}", fd, error_text(errno));
        if (got < 0 || (got == 0 && connected && seen >= total && ends_here(fd))) break;
        if (static_cast<size_t>(got) > buffer.size())
            fail("descriptor {}: a message of {} bytes waits in the socket: only {} can be saved", fd, got,
                 buffer.size());
        messages.push_back(Json::binary(Bytes(buffer.begin(), buffer.begin() + got)));
        seen += static_cast<int>(got);
    }
    if (connected && seen < total)
        fail("descriptor {}: only {} of the {} bytes that wait in the socket can be saved", fd, seen, total);
    return messages;
}

}  // namespace

Json waiting_in(int fd, int type) {
    if (type == SOCK_STREAM) return stream_in(fd);
    int offset = 0, off = -1;
    if (setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset) != 0)
        fail("descriptor {}: what waits in the socket cannot be looked at: {}", fd, error_text(errno));
    Json messages = messages_in(fd, type == SOCK_SEQPACKET);
    setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &off, sizeof off);
    return messages;
}

std::string lost_messages(int fd) {
    int offset = 0, count = 0;
    char byte;
    if (setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset) == 0) {
        while (count < 100000 && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC) >= 0) ++count;
        offset = -1;
        setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset);
    } else if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0) {
        count = 1;
    }
    return count == 0 ? "" : count == 1 ? "a message" : std::to_string(count) + " messages";
}

void put_back(int sender, const Json& messages, const std::string& who) {
    size_t all = 0, before = 0;
    for (const Json& message : messages) all += message.get_binary().size();
    for (const Json& message : messages) {
        const auto& bytes = message.get_binary();
        for (size_t done = 0;;) {
            ssize_t sent =
                send(sender, bytes.data() + done, bytes.size() - done, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (sent < 0)
                throw Refused{who + ": only " + std::to_string(before) + " of the " + std::to_string(all) +
                              " bytes that waited in the socket could be put back: " + error_text(errno) +
                              ": raise net.core.wmem_max and restart again"};
            done += static_cast<size_t>(sent);
            before += static_cast<size_t>(sent);
            if (done >= bytes.size()) break;
        }
    }
}

// SCM_RIGHTS (fdinfo has their number since Linux 5.6).
void refuse_descriptors_on_their_way(int fd) {
    std::string count = field(read_proc("/proc/self/fdinfo/" + std::to_string(fd)), "scm_fds");
    if (!count.empty() && count != "0")
        fail(
            "descriptor {}: {} descriptors that were sent to this socket (SCM_RIGHTS) and not received yet "
            "cannot be saved: checkpoint again when they are",
            fd, count);
}

// Sent, and not yet in the queue of the other end, which is full.
void refuse_bytes_on_their_way(int fd) {
    int unsent = 0;
    for (int attempt = 0; attempt < 20; ++attempt) {
        if (ioctl(fd, SIOCOUTQ, &unsent) != 0 || unsent <= 0) return;
        usleep(5000);  // an acknowledgement may be on its way
    }
    fail(
        "descriptor {}: {} bytes sent by this socket to another of the process do not fit there until it is "
        "read: checkpoint again then",
        fd, unsent);
}

}  // namespace fermata::split::process::descriptors
