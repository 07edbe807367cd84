// The root of a job: lives in `fermata run`, knows every node, serves the control socket, and leads
// checkpoints.
//
// Single-threaded. serve() handles whatever has arrived and never waits for anything in particular; the
// sequences that wait (checkpoint, diagnosis) call it in a loop with a deadline. Handlers only note what they
// heard.
#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "clock/tree.h"
#include "image/save_options.h"
#include "image/shared.h"
#include "launch/terminal_input.h"
#include "root/control.h"
#include "store/store.h"
#include "tree/restart_phase.h"
#include "tree/roster.h"
#include "tree/tree.h"
#include "tree/warnings.h"

namespace fermata::root {

// Seconds. A phase that takes longer is given up with a diagnosis; the job goes on.
struct Limits {
    double start = 600;       // until every rank of the job runs (its image is loaded); 0 = no limit
    double checkpoint = 600;  // request .. drain together
    double save = 3600;       // a request's own time is for both
    double resume = 60;
    double grace = 30;  // SIGTERM: request .. commit
};

struct Settings {
    std::string job;
    std::string job_id;
    uint64_t job_number = 0;  // image::Identity::job: the same over restarts
    std::string ckpt_dir;     // absolute
    std::string protocol = "cc-d";
    image::SaveOptions save_options;
    image::KeyPointer key;  // of the images; null = none
    std::vector<std::string> command;
    std::vector<store::Segment> segments;  // of a job of several programs
    int expected_ranks = 0;                // 0 = whatever mpiexec starts
    std::string restored;                  // generation this job was restarted from; empty = first start
    double interval = 0;                   // seconds; 0 = none, < 0 = auto (Young/Daly)
    double mtbf = 86400;                   // seconds between failures, for auto
    double walltime = 0;                   // seconds this job may last; 0 = no limit
    unsigned keep = 0;                     // generations; 0 = all
    bool verbose = false;
    bool note_end = false;  // exit code 0 is noted in the directory also when no generation was made
    Limits limits;
};

// One wish for a checkpoint.
struct Request {
    std::string origin;  // "command", "interval", "signal"
    bool stop = false;
    double timeout = 0;  // 0 = the default
    int client = -1;     // who gets the answer
};

struct Outcome {
    bool ok = false;
    ExitCode code = ExitCode::failed;
    std::string line;    // for people
    std::string detail;  // how long each phase took, likewise
    std::string generation;
    uint64_t bytes = 0;
    double seconds = 0;                                  // request .. resume
    std::vector<std::pair<std::string, double>> phases;  // seconds, in order
    std::string diagnosis;
    std::vector<std::string> warnings;  // of the ranks: what the generation does not hold
};

class Root {
  public:
    Root(Settings settings, const wire::Key& key, Fd control_listener);

    std::string address() const;  // for FERMATA_ROOT

    // Watches the job of this mpiexec until it ends; its exit code, or 85, or that of a fatal error.
    int watch(pid_t mpiexec, std::optional<launch::TerminalInput> input = {});
    // It ends because somebody wants it to: not to be restarted.
    bool asked_to_end() const { return cancelled_ || terms_ > 0; }

  private:
    // root.cpp
    void serve(int timeout_ms);
    void from_node(int node, const wire::Message& message);
    void lost_node(int node, const tree::NodeInfo& info);
    void joined(int node, const wire::Hello& hello);
    void take_requests();
    void answer(const Request& request, const Outcome& outcome);
    void release_finalize();
    bool over() const;  // what goes away now does so because the job ends
    void end_mpiexec();
    void clear_up();
    int exit_code() const;
    bool came_to_its_end() const;
    void note_end();
    bool everybody_is_here() const;
    std::string who_is_missing() const;
    std::string who_is_in_a_starter() const;
    const char* start_phase() const;
    std::optional<wire::Phase> furthest_behind() const;
    void watch_start();
    double next_interval() const;
    void plan_next();
    int64_t stop_due() const;
    void start_query();
    bool query_done() const;
    std::string status_json();
    void give_status();
    void pump_clock();

    // launcher_signals.cpp
    static Fd watch_signals();
    void signals();
    void hand_on(int signal, bool to_group);
    void asked_to_go();
    void suspend();
    void go_on();

    // checkpoint.cpp
    struct Abandoned {
        std::string why;
        ExitCode code = ExitCode::failed;
    };
    Outcome checkpoint(const Request& request);
    void enter(const char* phase);
    void leave_phase();
    template <class Done>
    void until(Done done, double end, const char* what);
    void drain(double end);
    double save(const Request& request, double end);
    void lay_out_shared_file(image::SharedFile& file);
    store::Manifest manifest() const;
    void take_back(const std::string& why);
    std::string diagnose();

    Settings settings_;
    store::Store store_;
    tree::Tree tree_;
    Control control_;
    std::unique_ptr<clock::Root> clock_;  // of the checkpoint in progress
    std::map<int, size_t> clock_child_;   // node -> child of clock_
    Fd signals_;

    // The job.
    pid_t mpiexec_ = -1;  // and its process group
    std::optional<launch::TerminalInput> input_;
    std::optional<int> mpiexec_status_;
    bool child_ended_ = false;  // mpiexec, or something it left
    tree::Roster roster_;
    std::string mpi_, mpi_version_;
    struct Starter {
        int pid;
        std::string program;
    };
    std::map<int, Starter> starters_;  // of ranks that have not started their MPI program yet
    std::string waiting_starter_;      // one that waits for the program: it may go on after that
    int64_t starters_since_ = 0;       // ms; when the newest change of starters_ was
    std::string somebody_gone_;        // first rank that left too early
    bool node_lost_ = false;           // with its daemon: its ranks go on, and nobody hears of them
    uint32_t restored_ranks_ = 0;
    tree::RestartPhases<int> phases_;  // of the nodes
    bool running_ = false;             // all ranks are here and, after a restart, released
    uint32_t finalized_ = 0;
    bool finalize_released_ = false;
    std::optional<wire::Fatal> fatal_;
    bool cancelled_ = false;  // `fermata cancel`
    bool stopped_ = false;    // checkpointed and stopped, or before a restart went on: exit 85
    int terms_ = 0;           // SIGTERMs seen
    int64_t last_term_ = 0;   // ms
    int signal_to_end_ = 0;   // handed on to mpiexec
    bool suspended_ = false;  // by SIGTSTP, until SIGCONT
    int64_t started_;
    int64_t start_word_ = 60'000;  // ms after started_: when to say the next time who is missing
    int64_t next_due_ = 0;         // ms; 0 = no interval
    uint32_t checkpoints_ = 0;
    Outcome last_;             // the newest, good or not
    uint64_t last_bytes_ = 0;  // of the newest good one
    double last_cost_ = 0;     // seconds the job stood still
    double last_seconds_ = 0;  // request .. resume of the newest good one
    bool stop_planned_ = false;

    // Requests and the checkpoint in progress.
    std::deque<Request> requests_;
    uint32_t epoch_ = 0;
    bool in_checkpoint_ = false;
    bool cancel_ = false;
    std::string phase_;  // empty = none
    int client_ = -1;    // who asked and hears of each phase
    int64_t phase_start_us_ = 0;
    Outcome now_;
    store::GenerationInfo generation_;
    uint32_t committed_ = 0;  // newest generation that this job has committed
    struct {
        std::string refusal;
        bool again = false;  // it would not be refused a second time
        uint32_t closed = 0, frozen = 0, drained = 0, captured = 0, resumed = 0, round = 0;
        uint64_t sent = 0, received = 0, open = 0;
        uint64_t suspend_us = 0;
        std::string save_error;
        tree::Warnings warnings;
        std::vector<wire::Saved> saved;
        std::vector<wire::Sized> sized;
        uint64_t shared_bytes = 0;     // of the file of all images, when there is one
        std::vector<uint64_t> begins;  // and where each is in it
    } heard_;

    // Diagnosis.
    int64_t query_end_ = 0;
    size_t query_nodes_ = 0;
    std::string diagnosis_;
    std::vector<int> status_clients_;
};

}  // namespace fermata::root
