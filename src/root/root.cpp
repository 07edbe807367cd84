#include "root/root.h"

#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/host_name.h"
#include "base/log.h"
#include "base/text.h"
#include "launch/library.h"
#include "tree/root_address.h"

namespace fermata::root {
namespace {

constexpr int kTurnMs = 200, kInjectMs = 10;
constexpr int64_t kLockPatienceMs = 1000;
constexpr int64_t kLastWordsMs = 200;      // for the launcher to pass on what was printed before MPI_Abort
constexpr int64_t kHelpLauncherMs = 2000;  // then the node daemons end the ranks
constexpr int64_t kHelpRefusedMs = 500;    // ranks that have not gone on yet have nothing to say
constexpr int64_t kKillLauncherMs = 10000;
constexpr int64_t kClearUpMs = 5000;

}  // namespace

Root::Root(Settings settings, const wire::Key& key)
    : settings_(std::move(settings)),
      store_(store::Store::for_writing(settings_.ckpt_dir, settings_.key)),
      tree_(key, tree::Manners::from_environment()),
      signals_(watch_signals()),
      started_(tree::now_ms()),
      start_(settings_.expected_ranks, settings_.restored, tree_, tally_),
      schedule_(settings_, started_) {
    // A daemon per rank, where many start one at once.
    if (settings_.expected_ranks > 0) tree_.at_most(64 + 4 * static_cast<size_t>(settings_.expected_ranks));
    tree_.on_message = [this](int node, const wire::Message& message) { from_node(node, message); };
    tree_.on_call = [this](const std::string& why) { roll_is_called(why); };
    tree_.on_here = [this](int node) { node_is_here(node); };
    tree_.on_lost = [this](int node, const tree::NodeInfo& info) { lost_node(node, info); };
    control_.on_request = [this](int client, const ControlRequest& request) { asked(client, request); };
}

// The job before may have been killed a moment ago: its lock goes with its last process.
void Root::lock_directory() {
    for (int64_t end = tree::now_ms() + kLockPatienceMs;;) {
        try {
            return store_.lock(settings_.job, settings_.job_number);
        } catch (const Error&) {
            if (tree::now_ms() > end) throw;
            ::usleep(20000);
        }
    }
}

std::string Root::address() const { return tree::addresses_of_this_host(tree_.port()); }

// ---- the life of a job

int Root::run(launch::Launcher& launcher, Beside* beside) {
    lock_directory();
    if (settings_.restored) store_.forget_end(settings_.job_number);
    note(journal::Kind::start,
         {{"name", settings_.job},
          {"pid", ::getpid()},
          {"host", host_name()},
          {"ranks", settings_.expected_ranks},
          {"restored", settings_.restored.name()},
          {"restarts", settings_.restarts},
          {"command", store::words_as_utf8(store::whole_command(settings_.command, settings_.segments))},
          {"directory", settings_.ckpt_dir}});
    if (!launcher_) begin(launcher);
    beside_ = beside;
    look_whether_it_runs();  // a life that stood by may be ready
    while (!over()) {
        serve(kTurnMs);
        if (beside_ && running_ && !finalize_released_) beside_->turn(newest());
        recover();
        take_requests();
        follow_program();
        release_finalize();
        watch_start();
        watch_losses();
        keeper_.turn(tree::now_ms());
        say_what_was_mended();
        if (settings_.each_turn) settings_.each_turn();
    }
    save_what_nodes_keep();
    if (!launcher_end_) end_launcher();
    clear_up([this] { serve(20); });
    answer_steering(true);
    for (const Request& request : requests_) {
        Outcome outcome;
        outcome.line = "the job ended before the checkpoint began";
        answer(request, outcome);
    }
    for (const OwnState::Answer& left :
         own_state_.take_rest("the job ended before the program saved its state"))
        answer(left.request, left.outcome);
    if (stopped_by_program() && own_state_.ends_by() == 0)
        say("the program has ended after it was asked to stop, and has saved nothing then: `fermata run` "
            "starts "
            "it again, in case it was not done");
    else if (stopped_by_program())
        say("the program has saved its own state and ended: `fermata run` starts it again, and it goes on "
            "from there");
    if (fatal_) {
        // Lines of the front name us already: it may have to say them without a tree.
        constexpr std::string_view kOurs = "fermata: ";
        say(fatal_->line.starts_with(kOurs) ? fatal_->line.substr(kOurs.size()) : fatal_->line);
    }
    // That mpiexec has said nothing. Ranks of a job that was stopped are gone, too.
    if (launcher_end_ == 0 && (node_is_lost() || losses_.killed()) && why_it_ended() == losses_.why())
        say(losses_.why());
    else if (never_went_on())
        say(why_it_ended());
    note_end();
    note(journal::Kind::end, {{"code", exit_code()},
                              {"why", why_it_ended()},
                              {"newest", newest().name()},
                              {"seconds", static_cast<double>(tree::now_ms() - started_) / 1000}});
    launcher_ = nullptr;
    beside_ = nullptr;
    return exit_code();
}

// Throws Error when nothing was started.
void Root::begin(launch::Launcher& launcher) {
    launcher.reach(daemons_);
    if (!launcher.ends_when_a_rank_dies()) {
        tree_.allow_no_return();
        // Where ranks go on without a node, no other node's way to the root shall lead over it.
        if (settings_.message_log || !settings_.replicas.empty()) tree_.stay_flat();
    }
    launcher.start();
    launcher_ = &launcher;
}

// So that nobody repeats what came after the last checkpoint.
void Root::note_end() {
    // A command without an MPI program is done again each time: it may have copied files to this machine.
    const bool wanted = settings_.note_end && start_.ranks() > 0;
    if (exit_code() != 0 || (!wanted && !newest() && !settings_.restored)) return;
    if (!came_to_its_end())
        return say(
            "mpiexec says that the job has ended well, but its ranks were ended before MPI_Finalize: it can "
            "still be continued");
    try {
        store_.note_end({settings_.job_number, settings_.job,
                         store::whole_command(settings_.command, settings_.segments),
                         local_time_text(::time(nullptr))});
    } catch (const std::exception& error) {
        say(fmt::format("the job has ended, which could not be noted: {}", error.what()));
    }
}

void Root::release_finalize() {
    if (finalize_released_ || start_.ranks() == 0 || tally_.answers().finalized.ranks < start_.ranks())
        return;
    finalize_released_ = true;
    schedule_.end();
    tree_.broadcast(wire::FinalizeReleased{});
}

// Ends the launcher and with it the ranks. Open MPI 4.1.4 ends its ranks on SIGTERM without a word, but says
// a lot when ranks leave on their own; it waits a second for them (odls_base_sigkill_timeout).
// Open MPI 5.0.7 drops then what it has not passed on yet. MPICH: docs/internals/job.md, the ranks of a
// stopped job.
void Root::end_launcher() {
    const bool by_ranks = launcher_->ends_with_its_ranks(), refused = settings_.restored && !running_;
    const int64_t help = refused ? kHelpRefusedMs : kHelpLauncherMs;
    if (refused) tree_.broadcast(wire::Leave{});
    const int64_t words = tree::now_ms() + (fatal_ && !refused && !by_ranks ? kLastWordsMs : 0);
    while (!launcher_end_ && tree::now_ms() < words) serve(20);
    if (by_ranks)
        tree_.broadcast(wire::Depart{});
    else if (!launcher_end_)
        launcher_->ask_to_end();  // not because somebody wants it
    if (signals_seen_.suspended) go_on();
    int64_t start = tree::now_ms();
    bool helped = false;
    while (!launcher_end_) {
        serve(20);
        int64_t waited = tree::now_ms() - start;
        // Not sooner: the program's last lines go through the launcher.
        if (!helped && waited > help) {
            if (by_ranks) launcher_->ask_to_end();
            tree_.broadcast(wire::Kill{});
            helped = true;
        }
        if (waited > kKillLauncherMs) {
            launcher_->kill();
            start = tree::now_ms();
        }
    }
}

// Nothing of the job is left running: what the launcher did not end, the node daemons do.
void Root::clear_up(const std::function<void()>& turn) {
    tree_.expect_no_return();
    tree_.broadcast(wire::Kill{});
    int64_t end = tree::now_ms() + kClearUpMs;
    while (!tree_.nodes().empty() && tree::now_ms() < end) turn();
}

bool Root::hides_lost_nodes() const {
    return launcher_->ends_when_a_rank_dies() && launch::hides_lost_nodes(start_.mpi_version());
}

// MPICH's mpiexec may exit with 0 when a signal has ended it, and does when ranks leave without MPI_Finalize.
bool Root::came_to_its_end() const {
    bool no_program = start_.ranks() == 0;
    const bool unseen = losses_.daemon() && !node_is_lost();
    return signals_seen_.to_end == 0 && (finalize_released_ || no_program || unseen);
}

bool Root::never_went_on() const {
    return launcher_end_ == 0 && settings_.restored && !running_ && !fatal_ && !cancelled_ &&
           signals_seen_.to_end == 0;
}

int Root::exit_code() const {
    if (stopped_) return static_cast<int>(ExitCode::to_be_continued);
    if (fatal_) return fatal_->code;
    if (cancelled_) return 128 + (signals_seen_.to_end != 0 ? signals_seen_.to_end : SIGTERM);
    if (stopped_by_program()) return static_cast<int>(ExitCode::to_be_continued);
    int code = launcher_end_.value_or(0);
    // Open MPI 5's mpiexec ends the ranks that are left when a node is lost, and exits with 0; MPICH 4.2.1's
    // does so now and then when one was killed.
    if (code == 0 && (node_is_lost() || losses_.killed()) && !finalize_released_) return losses_.code();
    if (never_went_on()) return 1;
    return code == 0 && signals_seen_.to_end != 0 ? 128 + signals_seen_.to_end : code;
}

std::string Root::why_it_ended() const {
    if (stopped_) return "checkpointed and stopped";
    if (cancelled_) return "cancelled";
    if (fatal_) return fatal_->line.substr(fatal_->line.starts_with("error: ") ? 7 : 0);
    if (signals_seen_.to_end != 0) return fmt::format("signal {}", signals_seen_.to_end);
    if (stopped_by_program()) return "saved by the program itself and stopped";
    if (exit_code() != 0 && losses_.any()) return losses_.why();
    if (never_went_on())
        return fmt::format(
            "the launcher says that the job has ended well, but it had not gone on from {} yet: restart it "
            "again",
            settings_.restored.name());
    if (exit_code() != 0) return fmt::format("the launcher has ended with {}", exit_code());
    return {};
}

bool Root::over() const { return launcher_end_ || stopped_ || fatal_ || cancelled_; }

// A start that takes long is spoken of, and one that takes too long is ended: nobody waits in silence.
void Root::watch_start() {
    if (running_ || finalize_released_ || fatal_ || launcher_end_) return;
    if (std::string why = start_.given_up(tree::now_ms()); !why.empty()) return fail_job(why);
    if (start_.some_in_starters()) return;  // scripts may prepare for hours, and need not start anything
    int64_t waited = tree::now_ms() - std::max(started_, start_.starters_since());
    bool over = settings_.limits.start > 0 && static_cast<double>(waited) > settings_.limits.start * 1000;
    if (!over && waited < start_word_) return;
    start_word_ = 2 * waited;
    std::string who = start_.who_is_missing(), diagnosis = diagnose();
    if (std::string more = launcher_->missing(); !more.empty()) who += "; " + more;
    if (!diagnosis.empty()) diagnosis = ":\n" + diagnosis;
    if (running_ || fatal_ || launcher_end_) return;  // it came meanwhile
    if (over)
        fail_job(fmt::format("the job did not start in {:.0f} s (--start-timeout): {}{}",
                             settings_.limits.start, who, diagnosis));
    else
        say(fmt::format("the job has not started after {} s: {}{}", waited / 1000, who, diagnosis));
}

std::vector<std::string> Root::lost_nodes() const {
    std::vector<std::string> hosts = losses_.suspects();
    hosts.insert(hosts.end(), copies_.lost_hosts.begin(), copies_.lost_hosts.end());
    return hosts;
}

Losses::Facts Root::facts_of_losses() const {
    return {launcher_->ends_when_a_rank_dies(),
            settings_.may_restart && (newest() || settings_.restored || own_state_.exists())};
}

// A rank or a daemon that is gone does not leave the job half alive for ever: the launcher ends it, or we do.
void Root::watch_losses() {
    if (!losses_.any() || over() || finalize_released_) return;
    const Losses::Facts facts = facts_of_losses();
    Losses::Verdict verdict = losses_.verdict(facts, tree::now_ms());
    if (verdict == Losses::Verdict::nothing) return;
    const std::string line = losses_.what_it_means(facts, verdict);
    if (verdict == Losses::Verdict::say) return say(line);
    fail_job(line, losses_.code());
}

// ---- one turn

void Root::serve(int timeout_ms) {
    if (!checkpoint_.in_progress()) timeout_ms = schedule_.rest(tree::now_ms(), timeout_ms);
    if (settings_.injection) timeout_ms = std::min(timeout_ms, kInjectMs);
    serve_once(timeout_ms);
    if (!launcher_ || launcher_end_) return;
    if (auto code = launcher_->ended()) {
        serve_once(0);  // the ranks' last words, which came before
        hides_lost_nodes_ = hides_lost_nodes();
        // Without MPI_Finalize: was a node lost? Its news may come behind the launcher's end.
        const bool early = running_ && !finalize_released_;
        if (early) {
            tree_.expect_no_return();
            serve_once(0);
        }
        const int64_t end = tree::now_ms() + (*code == 0 && hides_lost_nodes_ && early ? 1000 : 0);
        while (!losses_.daemon() && tree::now_ms() < end) serve_once(20);
        losses_.launcher_ended(host_name(), tree::now_ms());
        launcher_end_ = code;
    }
}

void Root::serve_once(int timeout_ms) {
    std::vector<pollfd> fds;
    fds.push_back({signals_.get(), POLLIN, 0});
    size_t control = fds.size();
    control_.add_to(fds);
    size_t nodes = fds.size();
    tree_.add_to(fds);
    size_t input = fds.size();
    if (launcher_) launcher_->add_to(fds);
    size_t beside = fds.size();
    if (beside_) beside_->add_to(fds);
    if (::poll(fds.data(), fds.size(),
               beside_ ? beside_->rest(tree_.rest(timeout_ms)) : tree_.rest(timeout_ms)) < 0)
        return;
    if (fds[0].revents) signals();
    control_.serve(fds, control);
    tree_.serve(fds, nodes);
    if (launcher_) launcher_->serve(fds, input);
    if (beside_) beside_->serve(fds, beside);
    checkpoint_.pump_clock();
    inject();
    answer_steering();
    if (!status_clients_.empty() && (!inquiry_.going_on() || query_done())) give_status();
}

}  // namespace fermata::root
