// The agent: one lower-half thread per rank that speaks with the tree, stops and resumes the upper threads,
// drains and saves. It is the only one that uses MPI after the freeze.
//
// run() is its loop. A message of the tree becomes an event (handle), as does what the agent finds out itself
// (look, converge_and_freeze); the table of agent_stages.cpp says for each stage and event which action
// follows (on), and act() does the action. Work that the application's MPI has to do, the agent asks of
// the_upper() (services.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/naps.h"
#include "image/pager.h"
#include "lower/agent_stages.h"
#include "lower/hand_over.h"
#include "lower/helpers_end.h"
#include "lower/hop.h"
#include "lower/increments.h"
#include "lower/mpi_start.h"
#include "lower/own_words.h"
#include "lower/rank_times.h"
#include "lower/restart.h"
#include "lower/saving.h"
#include "split/threads/stop.h"
#include "tree/agent_link.h"

namespace fermata::lower {

// The connection to the node daemon that a child goes on with (hop.h), once it is told to.
struct SecondLink {
    uint32_t epoch = 0;  // of the renewal
    int descriptor = -1;
    std::string orders{};                // of the exchange of message logs; empty: there was none
    std::vector<std::string> signals{};  // wire::Waiting
};

struct AgentTask {
    tree::AgentConfig config;
    MpiFacts facts;
    SavedRank who;
    std::unique_ptr<image::Pager> pager;  // restart: memory that comes later
    std::optional<SecondLink> second{};   // a child's
};

class Agent {
  public:
    // Starts the thread on a connected link; returns when it is ready to serve donors. Throws.
    static Agent& start(AgentTask task, std::unique_ptr<tree::AgentLink> link);

    // Restart. The main thread is in this phase; the agent says it to the tree.
    void note_phase(wire::RestartPhase phase);
    // Restart. The memory, threads and process state are back, or `parts` says why not. The agent rebuilds
    // the MPI objects, reports, waits for Go and lets all threads run. Returns at once.
    void finish_restart(RestoredParts parts);

  private:
    Agent(AgentTask task, std::unique_ptr<tree::AgentLink> link);

    // Takes what comes, as events of agent_stages.h.
    void run();
    void say_hello();
    void wait(Naps& naps);
    void handle(const wire::Message& message);
    void on(Event event, const wire::Message* message = nullptr);
    void mailbox();
    void look();
    void converge_and_freeze();
    void stop_threads();
    void query();

    // The actions of agent_stages.h: those that find something out return it as the next event.
    std::optional<Event> act(Action action, const wire::Message* message);
    std::optional<Event> act_on_image(Action action, const wire::Message* message);
    void go_on(Action action);
    void await_logs();
    [[noreturn]] void end_before_go();
    void rebuild();
    void follow_elsewhere();
    void go();
    std::optional<Event> consider();
    void begin();
    void hear_clock(const wire::Clock& m);
    void clock_out();
    void drain(const wire::Drain& m);
    std::optional<Event> capture();
    std::optional<Event> write(std::optional<uint64_t> place);
    void meet(const wire::Message& order);
    void conclude();
    void say_frozen();
    void say_log(const wire::AskLog& question);
    void say_log_size();
    void end_job(const std::string& line, int code);
    void ask_who_lives();
    void hear_who_lives(const wire::Living& said);
    uint64_t doubt_number() const;
    std::optional<Event> hop();
    void leave_to_child();
    void leave();
    [[noreturn]] static void depart();
    void stay_away();
    void run_program();
    void answer();
    void warn(const std::string& line, uint32_t epoch = 0);
    void say_phase();

    // A checkpoint that was asked for and has not begun here, and what the clock has said since.
    struct Asked {
        wire::Begin begin;
        std::vector<wire::Clock> clock;
        std::string refusal;
        uint64_t since;  // ns
    };
    // One checkpoint, from its beginning here until the program goes on and nobody writes.
    struct Checkpoint {
        Checkpoint(const wire::Begin& begin, uint64_t since)
            : epoch(begin.epoch), anywhere(begin.anywhere), times(since, begin.anywhere) {}
        uint32_t epoch;
        bool anywhere;         // no safe state was looked for: the library below may be in any
        wire::Bytes orders;    // of the exchange, then
        bool gave_up = false;  // has asked for a better one, once
        uint64_t sent = 0;     // messages of this rank when all threads stood
        std::vector<split::threads::NotStopped> not_stopped;
        std::unique_ptr<Together> work;  // from Save or Renew on: one of the two
        Saving* saving = nullptr;
        Hop* hop = nullptr;
        RankTimes times;
    };

    Rank rank() const { return task_.facts.rank(); }
    int32_t wire_rank() const { return static_cast<int32_t>(rank().number()); }
    bool alone() const { return stage_ == Stage::alone || stage_ == Stage::meeting_alone; }

    AgentTask task_;
    std::unique_ptr<tree::AgentLink> link_;
    Stage stage_;
    std::optional<Asked> asked_;
    std::optional<Checkpoint> checkpoint_;
    // Orders of the exchange of message logs, for a rank that is new or restored.
    struct LogsHeard {
        LogsHeard() = default;
        LogsHeard(uint32_t in, std::string orders) : epoch(in), bytes(std::move(orders)) {}
        explicit LogsHeard(const wire::LogOrder& order)
            : epoch(order.epoch),
              bytes(reinterpret_cast<const char*>(order.bytes.data()), order.bytes.size()) {}
        uint32_t epoch = 0;
        std::string bytes;  // empty: there was none
    } orders_;
    uint32_t ended_epoch_ = 0;  // of the newest Resume or Cancel, for the answer
    LastImage last_image_;
    HelpersEnd helpers_;
    OwnWords own_words_;
    RestartProgress progress_;
    struct {
        uint64_t when = 0, held = 0, spilled = 0;
    } log_said_;  // of the size of the message log
    struct {
        uint64_t since = 0;  // ns; 0: there is none
        uint32_t lost = 0;   // connections, as the root was asked last
    } doubt_;
    HandOver<RestoredParts> restored_;      // by the main thread
    std::unique_ptr<RestoredParts> parts_;  // taken; from `rebuilt` to Go
};

}  // namespace fermata::lower
