// How a node daemon finds the root, and proves itself.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tree/channel.h"
#include "wire/auth.h"

namespace fermata::tree {

// "127.0.0.1:4711@HERE,10.0.0.5:4711,[fe..]:4711": every address of this host, loopback first, with the name
// of the place where the loopback leads to this process: another node's leads to whoever listens there.
std::string addresses_of_this_host(uint16_t port);

struct Address {
    sockaddr_storage where{};
    socklen_t size = 0;
};
// Those that can lead there from `here`; of another place's loopback, or not readable, none.
std::vector<Address> parse_addresses(const std::string& text, const std::string& here);
// This boot's and this network namespace's name, without a comma or an @.
std::string this_place();

// Tries all addresses, side by side, until one answers that knows the key; again with back-off and jitter.
// An address has a deadline of its own: one that is silent or slow costs the others nothing. Throws Error.
Channel connect_to_root(const std::string& addresses, const wire::Key& key, int timeout_ms);
// TCP_NODELAY and keepalive: a node that vanished without a word is noticed within half a minute.
void tune_tcp(int socket);

}  // namespace fermata::tree
