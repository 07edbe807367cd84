// How a node daemon finds the root, and proves itself.
#pragma once

#include <cstdint>
#include <string>

#include "job/channel.h"
#include "wire/auth.h"

namespace fermata::job {

// "127.0.0.1:4711,10.0.0.5:4711,[fe..]:4711": every address of this host, loopback first.
std::string addresses_of_this_host(uint16_t port);
// Tries all addresses, with back-off and jitter, until one answers that knows the key. Throws Error.
Channel connect_to_root(const std::string& addresses, const wire::Key& key, int timeout_ms);
// TCP_NODELAY and keepalive: a node that vanished without a word is noticed within half a minute.
void tune_tcp(int socket);

}  // namespace fermata::job
