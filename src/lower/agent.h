// The agent: one lower-half thread per rank that speaks with the tree, stops and resumes the upper threads,
// drains and saves. It is the only one that uses MPI after the freeze.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fermata_table.h"
#include "lower/helpers_end.h"
#include "lower/meeting.h"
#include "lower/mpi_start.h"
#include "lower/rank_image.h"
#include "lower/shared_ranks.h"
#include "tree/agent_link.h"

namespace fermata::lower {

struct AgentTask {
    tree::AgentConfig config;
    MpiFacts facts;
    std::string program;
    uint64_t job = 0;                     // image::Identity::job
    image::KeyPointer key;                // of images
    std::unique_ptr<image::Pager> pager;  // restart: memory that comes later
};

// What the main thread asks of the agent during a restart.
struct RestartTask {
    std::string process_state;  // for the timers
    std::string error;          // why this rank could not be restored so far; empty = fine
};

class Agent {
  public:
    // Starts the thread on a connected link; returns when it is ready to serve donors. Throws.
    static Agent& start(AgentTask task, std::unique_ptr<tree::AgentLink> link);
    // Restart: the memory, threads and process state are back, or `error` says why not. The agent rebuilds
    // the MPI objects, reports, waits for Go and lets all threads run. Returns at once.
    void finish_restart(RestartTask task);

  private:
    Agent(AgentTask task, std::unique_ptr<tree::AgentLink> link);
    void run();
    void handle(const wire::Message& message);
    void tick();
    void clock_in(const wire::Clock& m);
    void clock_out();
    void rebuild();

    // Phases of a checkpoint, as far as a rank sees them.
    enum class Stage { idle, converge, freeze, drain, save };
    void begin(const wire::Begin& m, bool helpers_waited = false);
    void begin_late();
    void freeze(const wire::Freeze& m);
    void try_freeze();
    void drain(const wire::Drain& m);
    void save(const wire::Save& m);
    void met();
    void capture();
    int prepare_save();
    void forget_roster();
    void write(const wire::Placed* where);
    void leave(const wire::Leave& m);
    void resume(uint32_t epoch);
    void finish_save();
    void watch_writer();
    void go();
    void query();
    void lose_daemon();
    void go_on_alone();
    bool waits_for_others() const;
    void mailbox();

    AgentTask task_;
    std::unique_ptr<tree::AgentLink> link_;
    Stage stage_ = Stage::idle;
    uint32_t epoch_ = 0;
    bool frozen_ = false;
    bool asked_to_stop_ = false;        // the program's threads, for this freeze
    bool gave_up_ = false;              // this checkpoint, and said so
    std::optional<wire::Save> save_;    // to be done when all ranks have met
    std::unique_ptr<Meeting> meeting_;  // not over: this rank has said yes and stands until it knows of all
    // What came before the meeting was over and has to wait: Cancel, with its epoch, or the loss of the
    // daemon.
    std::optional<uint32_t> cancelled_;
    std::optional<CapturedImage> captured_;  // waits for its place in the shared file
    uint64_t save_began_ = 0;
    image::SaveOptions how_;                 // this checkpoint is written
    bool forks_ = false;                     // this checkpoint asked for children that write
    std::unique_ptr<PendingImage> writing_;  // of `saved_`
    wire::Saved saved_;
    std::unique_ptr<split::shared::Roster> roster_;  // of this checkpoint
    Incremental newest_;
    std::vector<split::Range> covered_;  // by the image that is being written
    bool leaves_ = false;                // stands until the launcher ends it
    bool lost_ = false;                  // the daemon is gone: no more checkpoints
    bool went_on_;                       // a restart that has been told to, or a first start
    bool ready_for_checkpoint() const;
    // A checkpoint that came before the program had loaded its front or all of its memory, and what the
    // clock's root has said since.
    HelpersEnd helpers_;
    std::optional<wire::Begin> early_;
    std::vector<wire::Clock> early_clock_;
    std::unique_ptr<RestartTask> restart_;
    uint32_t restart_ready_ = 0;  // futex-free flag: set before the bell is rung
};

}  // namespace fermata::lower
