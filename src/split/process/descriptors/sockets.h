// Sockets: pairs within the process come back connected, with what waits in them; listening and unconnected
// ones are made again; a connection to somebody else reads as closed by the peer.
//
// Data that waits in a pair comes back whole or the checkpoint is refused: descriptors in flight (SCM_RIGHTS)
// and bytes that the sender's side still holds cannot be looked at. A TCP connection within the process comes
// back with other port numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "split/process/descriptors/operations.h"

namespace fermata::split::process::descriptors {

using Address = std::vector<uint8_t>;  // a sockaddr
std::string text_of(const Address& address);
int option(int fd, int level, int name);

// Fills in "socket" of all sockets: those of a pair refer to each other by their place among them.
void capture_sockets(Capture& capture);

class Sockets {
  public:
    // In the order of the state, before the first is made.
    void add(const Description& one);
    // Throws Refused when what waited does not fit; none, with a line, when there can be no such socket here.
    Fd make(const Description& one, Restore& restore);
    void drop() { all_.clear(); }

  private:
    struct Socket {
        const Json& saved;
        size_t description;
        std::string who;
        Fd made;  // the second end of a pair, until its turn comes
    };
    Fd make_pair(Socket& one, Restore& restore);

    std::vector<Socket> all_;
};

}  // namespace fermata::split::process::descriptors
