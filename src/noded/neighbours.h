// Neighbours starts the node daemons of other hosts for the launcher `own`, by ssh: so the first host need
// not reach them all by itself. They come to the root by themselves; here it is only known when one could not
// be started.
#pragma once

#include <poll.h>

#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "noded/spawn.h"
#include "wire/auth.h"
#include "wire/message.h"

namespace fermata::noded {

class Neighbours {
  public:
    // `up`: says NotStarted.
    Neighbours(const wire::Key& key, std::function<void(const wire::Message&)> up)
        : key_(key), up_(std::move(up)) {}
    // Ends those that have not ended.
    ~Neighbours();

    void start(const wire::StartDaemons& order);
    void add_to(std::vector<pollfd>& fds) const;
    void serve();

  private:
    struct Starter {
        uint32_t node;
        std::string words;  // "ssh b"
        Child child;
        Fd said;  // a file: what it says on standard error
    };
    void start(const wire::StartDaemons& order, const wire::HostToStart& host);

    const wire::Key key_;
    const std::function<void(const wire::Message&)> up_;
    std::vector<Starter> starters_;
};

}  // namespace fermata::noded
