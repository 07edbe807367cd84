// Standard input that is a terminal: Fermata reads it and feeds the launcher.
//
// The launcher is in a process group of its own (mpiexec.cpp), and a terminal stops whoever reads it from
// another group than its foreground one (SIGTTIN). So the launcher gets a pipe, and what is typed goes into
// it while Fermata is in the foreground. In the background nothing is read, and nothing is stopped.
#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace fermata::launch {

class TerminalInput {
  public:
    // Nothing when standard input is not a terminal.
    static std::optional<TerminalInput> of_this_process();

    // The launcher's standard input, until it has been started.
    int launchers_end() const { return reader_.get(); }
    void launched() { reader_.reset(); }

    // Two entries. SIGTTIN is blocked by then: a read that is too late for the foreground fails.
    void add_to(std::vector<pollfd>& fds) const;
    void serve(const std::vector<pollfd>& fds, size_t first);

  private:
    bool in_foreground() const;
    void take();
    void hand_on();

    Fd terminal_;  // empty = its end has been seen
    Fd reader_, writer_;
    std::string typed_;  // and not yet taken by the pipe
};

}  // namespace fermata::launch
