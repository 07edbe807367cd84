// The root of a job: lives in `fermata run`, knows every node, serves the control socket, and leads
// checkpoints.
//
// Single-threaded. serve() handles whatever has arrived and never waits for anything in particular; the
// sequences that wait (checkpoint, diagnosis) call it in a loop with a deadline. Handlers only note what they
// heard.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "keeping/keeper.h"
#include "launch/launcher.h"
#include "root/beside.h"
#include "root/checkpoint/checkpoint.h"
#include "root/control/control.h"
#include "root/control/inquiry.h"
#include "root/daemons.h"
#include "root/log_sizes.h"
#include "root/nodes.h"
#include "root/plan/doubts.h"
#include "root/plan/injection.h"
#include "root/plan/members.h"
#include "root/plan/own_state.h"
#include "root/plan/schedule.h"
#include "root/plan/settings.h"
#include "root/plan/takeovers.h"
#include "root/plan/written.h"
#include "root/start/losses.h"
#include "root/start/start.h"
#include "store/store.h"
#include "tree/tally.h"
#include "tree/tree.h"

namespace fermata::root {

class Root {
  public:
    Root(Settings settings, const wire::Key& key);
    // Where people ask; said before run().
    void listen_at(Fd control_listener) { control_.listen_at(std::move(control_listener)); }

    std::string address() const;  // for FERMATA_ROOT

    // Starts the job, unless it stands by already, and watches it until it ends; the launcher's exit code, or
    // 85, or that of a fatal error. `beside` is served meanwhile; nullptr: nothing is. Throws Error when
    // nothing could be started.
    int run(launch::Launcher& launcher, Beside* beside = nullptr);

    // standing_by.cpp: a restart that is led up to where its ranks wait to be told what they go on from.

    // Starts it; serve() does the rest. Throws Error.
    void stand_by(launch::Launcher& launcher);
    void add_to(std::vector<pollfd>& fds);
    int rest(int otherwise) const { return tree_.rest(otherwise); }
    void serve(const std::vector<pollfd>& fds, size_t first);
    // True once all ranks wait.
    bool is_ready() const { return start_.furthest_behind() && !has_fallen(); }
    bool has_fallen() const { return over() || losses_.any(); }
    // Makes it the job of these settings, which run() then leads on.
    void take_up(Settings settings);
    // Ends all of it: nobody needs it.
    void dismiss();
    // True if it ends because somebody wants it to: not to be restarted.
    bool asked_to_end() const {
        return cancelled_ || signals_seen_.terms > 0 || signals_seen_.stop || signals_seen_.warned ||
               signals_seen_.to_end != 0;
    }
    // Hosts that lost a rank or their node daemon; the nodes may be gone.
    std::vector<std::string> lost_nodes() const;
    // The reason of its end, for people and for whoever may restart it; "" = nothing is known.
    std::string why_it_ended() const;
    // Hosts of the node daemons that are there.
    std::set<std::string> hosts() const { return tree_.hosts(); }
    bool lost_a_node() const { return losses_.daemon(); }
    int who_ended_it() const { return losses_.rank(); }
    Generation newest() const { return checkpoint_.newest(); }  // that this life has committed
    const OwnState& own_state() const { return own_state_; }

  private:
    // root.cpp: the life of a job
    void begin(launch::Launcher& launcher);
    void lock_directory();
    void serve(int timeout_ms);
    void serve_once(int timeout_ms);
    void release_finalize();
    bool over() const;  // what goes away now does so because the job ends
    void end_launcher();
    // `turn`: one of whoever is served, of some ms.
    void clear_up(const std::function<void()>& turn);
    int exit_code() const;
    bool hides_lost_nodes() const;
    bool node_is_lost() const { return hides_lost_nodes_ && losses_.node(); }
    bool came_to_its_end() const;
    // The launcher says that all is well, of a restart whose ranks were not all back.
    bool never_went_on() const;
    void note_end();
    void watch_start();
    void watch_losses();
    Losses::Facts facts_of_losses() const;

    // events.cpp: what nodes say
    void from_node(int child, const wire::Message& message);
    void joined(const wire::Group& group);
    void gone(const wire::Gone& message);
    void look_whether_it_runs();
    void exchange_logs_of_images();
    void roll_is_called(const std::string& why);
    void node_is_here(int node);
    void lost_node(int node, const tree::NodeInfo& info);
    template <class Noted>
    void lost(Noted noted);
    void rank_died(const std::string& line);
    void fail_job(const std::string& why, int32_t code = static_cast<int32_t>(ExitCode::failed));

    // requests.cpp: what people and schedules ask for
    void asked(int client, const ControlRequest& request);
    void cancel(int client, bool checkpoint_only);
    void take_requests();
    void take_due();
    Outcome again_if_asked(Outcome outcome, const std::function<Outcome()>& take);
    void answer_renewal(const Request& request, const Outcome& outcome);
    void done_with(const Request& request, const Outcome& outcome);
    void answer(const Request& request, const Outcome& outcome);

    // copies.cpp: ranks that two processes play
    bool plan_copies();
    void make_copies(int64_t in_ms);
    static constexpr int64_t kLaterMs = 1000;  // who has taken a rank's place catches up first
    // Copies that are gone are made again.
    bool replaces_copies() const { return !settings_.injection || settings_.injection->replace; }
    void copies_are_due();
    void see_who_lives();
    bool has_heard_of_a_death() const;
    bool waits_for_recovery() const;
    void note_copy(const char* what, int32_t rank, const std::string& host, int32_t pid,
                   const std::string& why) const;
    bool heard_of_copies(int node, const wire::Message& message);
    void copy_ended(int node, const wire::CopyEnded& said);
    void promoted(const wire::Promoted& said);
    void recover();
    void all_went_on(const Outcome& outcome, size_t deaths);
    std::string why_no_copy(int32_t rank) const;
    bool copies_are_on_their_way() const;
    nlohmann::json copies_json() const;

    // elsewhere.cpp: copies on other nodes
    tree::Ranks for_elsewhere() const;
    int node_for_copy(int32_t rank) const;
    void make_copies_elsewhere(const tree::Ranks& ranks);
    void start_copies(const tree::Ranks& of, Generation images);
    void leader_died(int node, const wire::LeaderDied& said);
    const Members::Copy* copy_elsewhere(int32_t rank, int node) const;
    void nobody_takes_over(int node, const tree::Ranks& ranks, const std::string& host);
    void nobody_plays(int node, int32_t rank, int32_t pid, const std::string& host, int32_t status);
    void takes_over(Takeovers::One one);
    void give_places();
    bool goes_on_without(int node, const tree::NodeInfo& info);
    void leave_to_copies(const tree::Ranks& ranks, const tree::NodeInfo& info, const std::string& line);
    void lose_copies(const tree::Ranks& copies, const std::string& line);
    void copy_is_gone(int32_t rank, int where);

    // steering.cpp: which ranks have copies is changed; failures for tests
    void steer(int client, const ControlRequest& request);
    std::string what_is_missing(bool& known) const;
    void answer_steering(bool last = false);
    void answer_steering(int client, ExitCode code, const std::string& line);
    std::vector<Injector::Process> processes() const;
    void inject();
    void injected(const wire::Injected& said);

    // own_requests.cpp: the same of a program that saves its own state
    void ask_program(const Request& request);
    void follow_program();
    void program_answered(const OwnState::Answer& answer);
    bool stopped_by_program() const;

    // status.cpp
    void start_query();
    std::string diagnose();
    bool query_done() const { return inquiry_.done(tree_.nodes().size()); }
    const char* state() const;
    std::string status_json();
    nlohmann::json schedule_json() const;
    void give_status();

    // levels.cpp
    void choose_generation();
    bool place_levels();
    void mend(int client, Generation only);
    void say_what_was_mended();
    void make_whole(double end);
    void make_whole(Generation generation, double end);
    void save_what_nodes_keep();

    // signals.cpp
    static Fd watch_signals();
    void signals();
    void hand_on(int signal, bool to_all);
    void ask_launcher_to_end();
    void asked_to_go();
    double grace() const;
    void interrupted(bool at_terminal);
    void ranks_warned(int signal);
    bool stopping() const;
    void suspend();
    void go_on();

    // door.cpp
    class Door;
    std::unique_ptr<Job> door();

    void note(journal::Kind kind, nlohmann::json fields) const;
    void note(journal::Kind kind) const;

    Settings settings_;
    store::Store store_;
    tree::Tree tree_;
    tree::Tally tally_{tree::Tally::Level::top};
    Nodes nodes_{tree_};
    keeping::Keeper keeper_{settings_, store_, nodes_};
    Control control_;
    Fd signals_;
    launch::Launcher* launcher_ = nullptr;
    Beside* beside_ = nullptr;
    Daemons daemons_{tree_, [this](const std::string& line) { rank_died(line); }};
    std::optional<int> launcher_end_;  // its exit code
    bool hides_lost_nodes_ = false;    // known by then

    // The job.
    int64_t started_;  // ms
    Start start_;
    int64_t start_word_ = 60'000;  // ms after started_: when to say the next time who is missing
    struct {
        bool yes = false;   // the job has not begun
        size_t polled = 0;  // first entry of the launcher's then
    } stands_by_;
    bool running_ = false;  // all ranks are here and, after a restart, released
    Losses losses_;         // ranks that left too early, daemons whose ranks go on unheard
    bool finalize_released_ = false;
    std::optional<wire::Fatal> fatal_;
    bool cancelled_ = false;  // `fermata cancel`
    bool stopped_ = false;    // checkpointed and stopped, or before a restart went on: exit 85
    struct {
        int terms = 0;           // SIGTERMs
        int interrupts = 0;      // SIGINTs
        bool stop = false;       // one of them will end the job
        int64_t last = 0;        // ms; of both
        bool warned = false;     // the ranks have said that the batch system sent them one
        int64_t last_usr1 = 0;   // ms; of those that came to ranks
        int to_end = 0;          // the newest that was handed on to the launcher and ends a job
        bool suspended = false;  // by SIGTSTP, until SIGCONT
    } signals_seen_;

    // Checkpoints.
    Schedule schedule_;
    std::deque<Request> requests_;
    Members members_;
    struct Death {
        int32_t rank;
        std::string host, line;
        int64_t at;  // ms
    };
    // A client that waits until the copies are there that it wants.
    struct Steering {
        int client;
        int64_t until;  // ms
        double patience;
    };
    struct {
        bool waits = false;  // a copy has its rank's place, and the ranks no world with it
        int tries = 0;
        int64_t due = 0;           // ms; 0 = none are wanted
        int behind = 0;            // times in a row that a rank was still a copy itself
        bool makes = false;        // at this moment
        std::string trouble;       // why the newest renewal has made none; "" = it has
        std::deque<Death> deaths;  // that are not masked yet
        uint32_t masked = 0;       // deaths that are
        double seconds = 0;        // these took together
        std::deque<Steering> asked;
        std::optional<Injector> injector;
        Written written;
        Takeovers takeovers;
        std::map<int32_t, wire::Cloned> cloned;  // in the attempt under way
        tree::Ranks coming;                      // other nodes are making these
        std::map<int, tree::Ranks> coming_to;    // likewise, by node
        int failures = 0;                        // attempts in a row
        std::vector<std::string> lost_hosts;     // whose ranks have gone on
        LogSizes logs;
        Doubts doubts;
    } copies_;
    enum class Logs { unknown, asked, exchanged } logs_ = Logs::unknown;  // of a restart's images
    uint32_t worlds_ = 0;                                                 // of ranks with new lower halves
    const std::unique_ptr<Job> job_ = door();
    Checkpoint checkpoint_{*job_, settings_, tally_, store_, keeper_};
    struct {
        Outcome newest;      // good or not
        uint64_t bytes = 0;  // of the newest good one
    } ended_;

    OwnState own_state_;
    Inquiry inquiry_;
    std::vector<int> status_clients_;
};

}  // namespace fermata::root
