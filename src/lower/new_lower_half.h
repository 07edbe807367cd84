// NewLowerHalf takes over an upper half that lies in this process's memory, with a lower half that has not
// served it before: after an image was loaded (new_process.h), or while the program lives.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/range.h"
#include "image/pager.h"
#include "lower/agent.h"
#include "lower/image_parts.h"
#include "lower/mpi_start.h"
#include "lower/restart.h"
#include "split/ids/ids.h"
#include "split/process/path_map.h"
#include "tree/agent_link.h"

namespace fermata::lower {

// An upper half without a lower one.
struct UpperHalf {
    Anchors anchors;                // where its services and its thread table are
    std::string program;            // path
    std::string from;               // the generation's directory, for messages
    uint64_t job;                   // number of the job that its images are of
    std::vector<Range> linkers;     // code of its dynamic linker
    split::process::PathMap moved;  // folders that are elsewhere since it was saved
    image::KeyPointer key;          // null: its images are not encrypted
};

class NewLowerHalf {
  public:
    NewLowerHalf(const tree::AgentConfig& config, const MpiFacts& facts, UpperHalf upper)
        : config_(config), facts_(facts), upper_(std::move(upper)) {}

    // The phases, in the order in which they are called. They throw fermata::Error.

    // Takes over services and thread table, and what depends on the CPU.
    void adopt();
    // Tells all ranks which process each of them is, while this thread may still use MPI.
    void meet_ranks();
    // Starts the agent, which serves the threads that are made next and takes `link`. `pager`: null, or what
    // reads memory that comes later. `second`: in a child that goes on (hop.h).
    void start_agent(std::unique_ptr<tree::AgentLink>& link, std::unique_ptr<image::Pager> pager,
                     std::optional<SecondLink> second = {});
    // Makes a kernel thread for each of the table; "" or why one could not be made.
    std::string make_threads();
    // Gives all ids of the program their new numbers, before any of its code runs.
    void renew_ids();
    // Leaves the rest, rebuild and go, to the agent.
    void hand_over(RestoredParts parts);

    Agent* agent() { return agent_; }  // null before start_agent()

  private:
    const tree::AgentConfig& config_;
    const MpiFacts& facts_;
    const UpperHalf upper_;
    std::vector<split::ids::RankProcess> processes_;  // of all ranks
    Agent* agent_ = nullptr;
};

}  // namespace fermata::lower
