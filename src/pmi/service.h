// A Service is what the node daemon offers to the MPI libraries of its ranks while they start: the PMI-1
// Engine for MPICH and its relatives, PmixLink (with a helper process) for Open MPI. Neither does any I/O:
// what came in is handed over by calls, and what is to be done comes out of next(), one Event at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pmi/fence.h"
#include "pmi/world.h"

namespace fermata::pmi {

// Bytes for the PMI socket of a rank (Engine).
struct ToRank {
    Rank rank;
    std::string bytes;
};
// Bytes for the helper's socket (PmixLink).
struct ToHelper {
    std::string bytes;
};
// A Fence as an event is this node's part: to the FenceMerge above.

// A direct question for data that a rank on another node has published (PmixLink): to the node that holds
// `rank`.
struct Ask {
    uint32_t epoch = 0;
    uint32_t from = 0;    // node that asks
    uint32_t number = 0;  // of its questions
    Rank rank;
};
// An answer for the node `to`.
struct Answer {
    uint32_t epoch = 0;
    uint32_t to = 0;
    uint32_t number = 0;
    std::string data;
    std::string fault;  // one line; not empty: there is no data
};
// A rank called MPI_Abort (or its library did): end the job, exit code `code`.
struct Abort {
    Rank rank;
    int code = 0;
    std::string text;
};
// A rank said what the protocol forbids, or cannot go on: a line for the user that names it. The rank has
// been told, and is to be ended if it does not end by itself.
struct Fault {
    std::optional<Rank> rank;  // nothing = all ranks of this node (the helper failed)
    std::string line;
};

using Event = std::variant<ToRank, ToHelper, Fence, Ask, Answer, Abort, Fault>;

// The stage that a rank has come to. A rank that ends in `running` has died, whatever its exit code.
enum class Stage { silent, running, finalized, failed };

class Service {
  public:
    virtual ~Service() = default;

    // NAME, value: what this rank is to be started with, over what the user gave.
    virtual std::vector<std::pair<std::string, std::string>> environment(Rank rank) const = 0;
    // Takes the result of a fence of all nodes, from above.
    virtual void result(const Fence& whole) = 0;
    // Takes a question, or an answer, of another node.
    virtual void asked(const Ask& ask) = 0;
    virtual void answered(const Answer& answer) = 0;
    // A rank of this node has ended; `how`: "was killed by signal 9". To be called for every one, when what
    // was left on its socket has been handed over.
    virtual void ended(Rank rank, const std::string& how) = 0;
    virtual Stage stage(Rank rank) const = 0;

    // The event that is to be done next; nothing = wait for more.
    std::optional<Event> next() {
        if (events_.empty()) return std::nullopt;
        Event event = std::move(events_.front());
        events_.pop_front();
        return event;
    }

  protected:
    void out(Event event) { events_.push_back(std::move(event)); }

  private:
    std::deque<Event> events_;
};

}  // namespace fermata::pmi
