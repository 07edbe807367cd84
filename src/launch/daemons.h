// Daemons are the node daemons of a job as a launcher sees them that has started them itself: the root hands
// its messages on, and what they answer back to it (Launcher::heard).
#pragma once

#include <cstddef>

#include "wire/message.h"

namespace fermata::launch {

class Daemons {
  public:
    virtual ~Daemons() = default;
    // `daemon`: what the root calls it (wire::Ready); nothing of it is known here but this number.
    virtual void send(int daemon, const wire::Message& message) = 0;
    virtual void broadcast(const wire::Message& message) = 0;
    // Notes how many ranks are started: so much may be said at once by this one and by those below it.
    virtual void expect(int daemon, size_t ranks) = 0;
    // How many daemons stand right below the root, and below each of them.
    virtual size_t width() const = 0;
    // A rank has died; `line` says which, where and of what. The other ranks' fate is decided above.
    virtual void rank_died(const std::string& line) = 0;
};

}  // namespace fermata::launch
