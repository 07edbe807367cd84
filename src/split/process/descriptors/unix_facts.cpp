#include "split/process/descriptors/unix_facts.h"

#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace fermata::split::process::descriptors {

UnixFacts ask_unix(uint64_t inode) {
    UnixFacts facts;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (fd < 0) return facts;
    struct {
        nlmsghdr header;
        unix_diag_req request;
    } query = {};
    query.header.nlmsg_len = sizeof query;
    query.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    query.header.nlmsg_flags = NLM_F_REQUEST;
    query.request.sdiag_family = AF_UNIX;
    query.request.udiag_states = 0xffffffff;
    query.request.udiag_ino = static_cast<uint32_t>(inode);
    query.request.udiag_show = UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN;
    query.request.udiag_cookie[0] = query.request.udiag_cookie[1] = ~0u;
    alignas(nlmsghdr) char answer[4096];
    timeval limit = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ssize_t size =
        send(fd, &query, sizeof query, 0) == sizeof query ? recv(fd, answer, sizeof answer, 0) : -1;
    auto* header = reinterpret_cast<nlmsghdr*>(answer);
    if (size > 0 && NLMSG_OK(header, static_cast<unsigned>(size)) &&
        header->nlmsg_type == SOCK_DIAG_BY_FAMILY) {
        auto* message = static_cast<unix_diag_msg*>(NLMSG_DATA(header));
        // Attributes of rtnetlink's form follow: u16 length, u16 type, value.
        auto* at = reinterpret_cast<const uint8_t*>(message + 1);
        const auto* end = reinterpret_cast<const uint8_t*>(answer) + header->nlmsg_len;
        while (at + 4 <= end) {
            uint16_t length, type;
            std::memcpy(&length, at, 2);
            std::memcpy(&type, at + 2, 2);
            if (length < 4) break;
            uint32_t value[2] = {};
            std::memcpy(value, at + 4, std::min<size_t>(length - 4u, sizeof value));
            if (type == UNIX_DIAG_PEER) facts.peer = value[0];
            if (type == UNIX_DIAG_RQLEN) facts.waiting = value[0], facts.backlog = value[1];
            if (type == UNIX_DIAG_SHUTDOWN) facts.shut = static_cast<uint8_t>(value[0]);
            at += (length + 3u) & ~3u;
        }
    }
    close(fd);
    return facts;
}

}  // namespace fermata::split::process::descriptors
