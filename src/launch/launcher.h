// Launcher starts the ranks of a job, and ends with them. The root knows no more of it than this: not whether
// it is a process, nor which.
#pragma once

#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "base/rank.h"
#include "launch/daemons.h"
#include "launch/renewal.h"
#include "launch/terminal_input.h"

namespace fermata::launch {

class Launcher {
  public:
    virtual ~Launcher() = default;

    // Starts the ranks. Throws Error when nothing was started.
    virtual void start() = 0;
    // Its exit code as a shell has it (128 + the signal that ended it), once all is over.
    virtual std::optional<int> ended() = 0;
    // Asks it to end the ranks and then itself, in its own time.
    virtual void ask_to_end() = 0;
    // Ends it at once, whatever it leaves.
    virtual void kill() = 0;
    // A signal that came to Fermata and is the launcher's; to all processes of the launcher, or to it alone.
    virtual void hand_on(int signal, bool to_all) = 0;
    // Whether it ends the other ranks when one has died. False: they go on until the root decides.
    virtual bool ends_when_a_rank_dies() const { return true; }
    // Whether it ends, without a word, when all ranks leave by themselves with exit code 0: then they are
    // told to, and it is asked to end only when they do not.
    virtual bool ends_with_its_ranks() const { return false; }
    // Why each rank is a job of its own, when it is: one line.
    virtual std::string why_alone() const { return "does the program match this mpiexec?"; }
    // Hosts on which it could not start what it needs there.
    virtual std::vector<std::string> unreached() const { return {}; }
    // Words for people about ranks that have not come; "" = no more than the root knows.
    virtual std::string missing() const { return {}; }

    // A launcher that starts the node daemons reaches them through these; said before start().
    virtual void reach(Daemons&) {}
    // Makes it start ranks that wait to be told what they go on from, and leave Fermata's input to the
    // launcher whose ranks run; said before start().
    virtual void stand_by() {}
    // Makes it that other one.
    virtual void take_up(std::optional<TerminalInput>) {}
    // Whether ranks of its may come together in another world while the job runs.
    virtual bool renews() const { return false; }
    // Plans what they shall find there. Throws Error when that cannot be.
    virtual void plan_renewal(const Renewal&) {}
    // Makes ready for the world of this number; the order for the node daemons.
    virtual wire::Renew renew(uint32_t /*world*/) { return {}; }
    // Notes that they have come there.
    virtual void renewed() {}
    // Takes a message of a node daemon. False: it is nothing for its launcher.
    virtual bool heard(const wire::Message&) { return false; }
    // Notes that this rank goes on on the node of this daemon, in the next world of theirs: it has died where
    // it was, or is about to, and that is no failure.
    virtual void rank_moved(Rank, int /*daemon*/) {}
    // Notes that this node daemon is gone, and with it the ranks that have not moved before.
    virtual void lost(int /*daemon*/) {}

    // Adds descriptors that it wants polled: the program's standard input, for one. `first`: index of its
    // first entry.
    virtual void add_to(std::vector<pollfd>&) {}
    virtual void serve(const std::vector<pollfd>&, size_t /*first*/) {}
};

}  // namespace fermata::launch
