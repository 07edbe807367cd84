// Multicast groups that a socket has joined.
//
// A socket does not list them: every group that this node has joined is asked about (MCAST_MSFILTER answers
// EADDRNOTAVAIL for a socket that is no member).
#include <arpa/inet.h>
#include <fmt/core.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "split/process/descriptors/socket_options.h"

namespace fermata::split::process::descriptors {
namespace {

struct Group {
    unsigned interface = 0;
    sockaddr_storage address = {};
};

// /proc/net/igmp: "2 eth0 : …" and below it, indented, "010000E0 1 …"; a word in memory order.
std::vector<Group> groups_of_node() {
    std::vector<Group> groups;
    unsigned interface = 0, word = 0;
    std::istringstream four(read_proc("/proc/net/igmp"));
    for (std::string line; std::getline(four, line);) {
        if (!line.starts_with("\t")) {
            std::sscanf(line.c_str(), "%u", &interface);
        } else if (std::sscanf(line.c_str(), " %8X", &word) == 1) {
            Group& group = groups.emplace_back();
            group.interface = interface;
            auto& in = reinterpret_cast<sockaddr_in&>(group.address);
            in.sin_family = AF_INET;
            in.sin_addr.s_addr = word;
        }
    }
    std::istringstream six(read_proc("/proc/net/igmp6"));
    for (std::string line; std::getline(six, line);) {
        char text[33] = "";
        if (std::sscanf(line.c_str(), "%u %*s %32s", &interface, text) != 2) continue;
        Group& group = groups.emplace_back();
        group.interface = interface;
        auto& in = reinterpret_cast<sockaddr_in6&>(group.address);
        in.sin6_family = AF_INET6;
        for (size_t i = 0; i < 16; ++i) {
            unsigned byte = 0;
            std::sscanf(text + 2 * i, "%2x", &byte);
            in.sin6_addr.s6_addr[i] = static_cast<uint8_t>(byte);
        }
    }
    return groups;
}

int level_of(const sockaddr_storage& address) {
    return address.ss_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
}

}  // namespace

// [[name of the interface, address], …]
Json capture_groups(int fd, int domain, Lines& warnings) {
    Json joined = Json::array();
    if (domain != AF_INET && domain != AF_INET6) return joined;
    for (const Group& group : groups_of_node()) {
        group_filter filter = {};
        filter.gf_interface = group.interface;
        filter.gf_group = group.address;
        socklen_t size = sizeof filter;
        if (getsockopt(fd, level_of(group.address), MCAST_MSFILTER, &filter, &size) != 0) continue;
        char name[IF_NAMESIZE] = "";
        if_indextoname(group.interface, name);
        if (filter.gf_fmode != MCAST_EXCLUDE || filter.gf_numsrc != 0)
            warnings.push_back(
                fmt::format("descriptor {}: which senders of a multicast group on {} are heard is not "
                            "saved: after a restart all are",
                            fd, name));
        const auto* bytes = reinterpret_cast<const uint8_t*>(&group.address);
        joined.push_back({name, Json::binary(std::vector<uint8_t>(bytes, bytes + sizeof group.address))});
    }
    return joined;
}

void restore_groups(int fd, const Json& joined, const std::string& who, Lines& warnings) {
    for (const Json& one : joined) {
        std::string name = one.at(0);
        const auto& bytes = one.at(1).get_binary();
        group_req request = {};
        request.gr_interface = if_nametoindex(name.c_str());
        std::memcpy(&request.gr_group, bytes.data(), std::min(bytes.size(), sizeof request.gr_group));
        if (setsockopt(fd, level_of(request.gr_group), MCAST_JOIN_GROUP, &request, sizeof request) != 0)
            warnings.push_back(
                fmt::format("{}: the multicast group on interface {} cannot be joined here: {}", who, name,
                            error_text(errno)));
    }
}

}  // namespace fermata::split::process::descriptors
