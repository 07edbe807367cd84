// Data that waits in sockets: it comes back whole, or the checkpoint or the restart is refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "split/process/parts.h"

namespace fermata::split::process::descriptors {

// Data that waits to be read, message by message (one for streams), without taking it out.
Json waiting_in(int fd, int type);
// Messages that wait and will be lost, for people; "" when there is none.
std::string lost_messages(int fd);
// Throws Refused.
void put_back(int sender, const Json& messages, const std::string& who);

// Refuse what cannot be looked at. Both throw fermata::Error.
void refuse_descriptors_on_their_way(int fd);
void refuse_bytes_on_their_way(int fd);

}  // namespace fermata::split::process::descriptors
