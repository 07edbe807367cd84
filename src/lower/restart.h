// A restart of one rank, as the list of its phases (wire::RestartPhase, the words of `fermata status`):
//
//     load      the program's files are put back; memory is mapped and read; what ranks share is made
//     adopt     the upper half is taken over: services, thread table, what depends on the CPU
//     threads   a kernel thread for each saved thread
//     process   descriptors, signals, limits, …
//     rebuild   MPI objects; over when every rank has done it
//     go        this rank has said so, and waits for the others
//
// The main thread does the first four, the agent the last two: only the agent may use MPI once it runs, and
// only it hears Go. NewProcess has what a new process needs (load, process), NewLowerHalf what an upper half
// needs of a lower half that is new to it (adopt, threads).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "image/image.h"
#include "lower/mpi_start.h"
#include "tree/agent_link.h"
#include "wire/message.h"

namespace fermata::lower {

// The phase that the main thread is in, for the agent, which says it to the tree: best effort, the newest.
class RestartProgress {
  public:
    void enter(wire::RestartPhase phase) {
        news_.store(static_cast<uint32_t>(phase), std::memory_order_release);
    }
    // Nothing: none was entered since the last question.
    std::optional<wire::RestartPhase> take_news() {
        uint32_t phase = news_.exchange(0, std::memory_order_acq_rel);
        if (phase == 0) return {};
        return wire::RestartPhase{phase};
    }

  private:
    std::atomic<uint32_t> news_{0};  // 0 = none; phases count from 1
};

// Results of the main thread's part, for the agent, which does the rest.
struct RestoredParts {
    std::string process_state;  // for the timers
    std::string error;          // why this rank could not be restored so far; empty = fine
};

// The phases of the main thread; continues the program. `config` says in the end which generation it was.
// Throws fermata::Error; `link` is null when the agent has it by then.
[[noreturn]] void continue_image(tree::AgentConfig& config, const MpiFacts& facts, image::KeyPointer key,
                                 std::unique_ptr<tree::AgentLink>& link);

// The phases of the agent. Rebuilds the MPI objects; collective over all ranks. "" or why not.
std::string rebuild_objects(const RestoredParts& parts, Rank rank);
// Every rank is back: all threads run. Lines for the user.
std::vector<std::string> let_program_run(const RestoredParts& parts);

}  // namespace fermata::lower
