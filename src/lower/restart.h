// A restart of one rank, as the list of its phases. The main thread does the first ones, the agent the last
// two: only the agent may use MPI once it runs, and only it hears Go.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "image/image.h"
#include "job/agent_link.h"
#include "lower/mpi_start.h"

namespace fermata::lower {

// In order. The words are those of `fermata status`.
enum class RestartPhase : uint8_t {
    files,    // the program's files are put back; over when every rank has done it
    load,     // memory is mapped and read; what ranks share is made
    adopt,    // the upper half is taken over: services, thread table, what depends on the CPU
    threads,  // a kernel thread for each saved thread
    process,  // descriptors, signals, limits, …
    rebuild,  // MPI objects; over when every rank has done it
    go,       // this rank has said so, and waits for the others
};
const char* word_of(RestartPhase phase);

// The phase that a rank is in. Any thread enters one; whoever speaks with the node daemon takes the newest.
class RestartProgress {
  public:
    void enter(RestartPhase phase) { entered_.store(static_cast<int>(phase), std::memory_order_release); }
    // Nothing: no other one than taken before.
    std::optional<RestartPhase> take_news();

  private:
    std::atomic<int> entered_{-1};
    int taken_ = -1;
};

// What the main thread has brought back, for the agent, which does the rest.
struct RestoredParts {
    std::string process_state;  // for the timers
    std::string error;          // why this rank could not be restored so far; empty = fine
};

// The phases of the main thread; continues the program. Throws fermata::Error; `link` is null when the agent
// has it by then.
[[noreturn]] void continue_image(const job::AgentConfig& config, const MpiFacts& facts, image::KeyPointer key,
                                 std::unique_ptr<job::AgentLink>& link);

// The phases of the agent. Rebuilds the MPI objects; collective over all ranks. "" or why not.
std::string rebuild_objects(const RestoredParts& parts, int rank);
// Every rank is back: all threads run. Lines for the user.
std::vector<std::string> let_program_run(const RestoredParts& parts);

}  // namespace fermata::lower
