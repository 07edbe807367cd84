// Starters are the processes that start node daemons: a daemon of this machine itself, ssh for one of another
// host, one srun for those of an allocation.
//
// The job's key goes to daemons in the environment of a process of this user, or through standard input; it
// stands on no command line.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "launch/plan.h"
#include "wire/message.h"

namespace fermata::launch::own {

class Starters {
  public:
    explicit Starters(const LaunchPlan& plan) : plan_(plan) {}
    // Ends what has not ended by itself.
    ~Starters();

    void here(uint32_t node);
    void by_ssh(uint32_t node, const std::string& host);
    // Has a daemon that runs start those of other hosts in the same way.
    wire::StartDaemons order(std::vector<wire::HostToStart> hosts) const;
    // On so many nodes of the allocation, those of `names` when it names any; the number of each is that of
    // its task.
    void by_srun(uint32_t nodes, const std::vector<std::string>& names);

    // Why a daemon has not been started, once it is known: one line for the first.
    std::optional<std::string> failure();

  private:
    struct Starter {
        pid_t pid = -1;
        std::string what;      // "the node daemon on b"
        std::string words;     // "ssh b"
        bool returns = false;  // with 0, when the daemon runs
    };
    void start(Starter starter, const std::vector<std::string>& words, const std::string& daemon, int input,
               const std::function<void()>& prepare);

    const LaunchPlan& plan_;
    std::vector<Starter> starters_;
};

}  // namespace fermata::launch::own
