// Beside is what a root's process serves besides its job: the next life of it, which stands by.
#pragma once

#include <poll.h>

#include <vector>

#include "base/generation.h"

namespace fermata::root {

class Beside {
  public:
    virtual ~Beside() = default;
    virtual void add_to(std::vector<pollfd>& fds) = 0;
    // ms that poll may take, at most `otherwise`.
    virtual int rest(int otherwise) const = 0;
    // `first`: index of its first entry.
    virtual void serve(const std::vector<pollfd>& fds, size_t first) = 0;
    // The job runs, and has committed this generation; none: it has not. Nothing throws.
    virtual void turn(Generation newest) = 0;
    // For `fermata status`: "none", "starting", "ready".
    virtual const char* state() const = 0;
};

}  // namespace fermata::root
