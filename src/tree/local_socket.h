// Unix sockets inside a private directory. The address goes through /proc/self/fd, because sun_path holds 107
// bytes and run directories may be longer.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/fd.h"

namespace fermata::tree {

struct Peer {
    uid_t uid = 0;
    pid_t pid = 0;
};

// Listens at `directory`/`name` (mode 0600), non-blocking. Throws Error.
Fd listen_local(const std::string& directory, const std::string& name);
// Empty Fd and errno when nobody listens there; blocking socket otherwise.
Fd connect_local(const std::string& directory, const std::string& name);
// The kernel's facts about the other end.
Peer peer_of(int socket);

void set_nonblocking(int fd, bool on = true);

}  // namespace fermata::tree
