#include "root/root.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "tree/root_address.h"

namespace fermata::root {

using nlohmann::json;

namespace {

constexpr int kTurnMs = 200;

// Text of ranks may hold anything; JSON must not.
std::string dump(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

Root::Root(Settings settings, const wire::Key& key, Fd control_listener)
    : settings_(std::move(settings)),
      store_(store::Store::for_writing(settings_.ckpt_dir, settings_.key)),
      tree_(key),
      control_(std::move(control_listener)),
      signals_(watch_signals()),
      started_(tree::now_ms()) {
    // The job before may have been killed a moment ago: its lock goes with its last process.
    for (int64_t end = tree::now_ms() + 1000;;) {
        try {
            store_.lock(settings_.job, settings_.job_number);
            break;
        } catch (const Error&) {
            if (tree::now_ms() > end) throw;
            ::usleep(20000);
        }
    }
    if (!settings_.restored.empty()) store_.forget_end(settings_.job_number);
    // A daemon per rank, where many start one at once.
    if (settings_.expected_ranks > 0) tree_.at_most(64 + 4 * static_cast<size_t>(settings_.expected_ranks));
    tree_.on_message = [this](int node, const wire::Message& message) { from_node(node, message); };
    tree_.on_lost = [this](int node, const tree::NodeInfo& info) { lost_node(node, info); };
    control_.on_request = [this](int client, const ControlRequest& request) {
        if (request.verb == "checkpoint" && in_checkpoint_ && settings_.save_options.refuse_busy) {
            control_.say(client,
                         dump({{"done", true},
                               {"ok", false},
                               {"code", static_cast<int>(ExitCode::refused)},
                               {"line", "a checkpoint is being written, and busy=refuse was asked for"}}));
            control_.finish(client);
        } else if (request.verb == "checkpoint") {
            requests_.push_back({"command", request.stop, request.timeout, client});
        } else if (request.verb == "cancel") {
            // Of the checkpoint in progress, or of the whole job.
            bool possible = in_checkpoint_ || !request.checkpoint_only;
            if (in_checkpoint_) cancel_ = true;
            if (!request.checkpoint_only) cancelled_ = true;
            control_.say(client, dump({{"done", true},
                                       {"code", possible ? 0 : 1},
                                       {"line", possible ? "cancelled" : "no checkpoint is in progress"}}));
            control_.finish(client);
        } else if (request.verb == "status") {
            status_clients_.push_back(client);
            if (request.diagnosis) start_query();
        } else {
            control_.finish(client);
        }
    };
}

std::string Root::address() const { return tree::addresses_of_this_host(tree_.port()); }

// ---- the life of a job

int Root::watch(pid_t mpiexec, std::optional<launch::TerminalInput> input) {
    mpiexec_ = mpiexec;
    input_ = std::move(input);
    while (!over()) {
        serve(kTurnMs);
        take_requests();
        release_finalize();
        watch_start();
    }
    if (!mpiexec_status_) end_mpiexec();
    clear_up();
    for (const Request& request : requests_) {
        Outcome outcome;
        outcome.line = "the job ended before the checkpoint began";
        answer(request, outcome);
    }
    if (fatal_) {
        // Lines of the front name us already: it may have to say them without a tree.
        constexpr std::string_view kOurs = "fermata: ";
        say(fatal_->line.starts_with(kOurs) ? fatal_->line.substr(kOurs.size()) : fatal_->line);
    }
    note_end();
    return exit_code();
}

// So that nobody repeats what came after the last checkpoint.
void Root::note_end() {
    if (exit_code() != 0 || (!settings_.note_end && committed_ == 0 && settings_.restored.empty())) return;
    if (!came_to_its_end())
        return say(
            "mpiexec says that the job has ended well, but its ranks were ended before MPI_Finalize: it can "
            "still be "
            "continued");
    try {
        store_.note_end({settings_.job_number, settings_.job,
                         store::whole_command(settings_.command, settings_.segments),
                         local_time_text(::time(nullptr))});
    } catch (const std::exception& error) {
        say(fmt::format("the job has ended, which could not be noted: {}", error.what()));
    }
}

void Root::take_requests() {
    if (next_due_ && tree::now_ms() >= next_due_ && requests_.empty() && !finalize_released_) {
        next_due_ = 0;
        requests_.push_back({"interval", false, 0, -1});
    }
    if (settings_.walltime > 0 && !stop_planned_ && running_ && !finalize_released_ &&
        tree::now_ms() >= stop_due()) {
        stop_planned_ = true;
        requests_.push_front({"walltime", true, settings_.walltime, -1});
    }
    if (requests_.empty()) return;
    Request request = requests_.front();
    requests_.pop_front();
    Outcome outcome;
    if (suspended_) {
        outcome.code = ExitCode::refused;
        outcome.line = fmt::format("the job is suspended (SIGTSTP): kill -CONT {} lets it go on", ::getpid());
    } else {
        outcome = checkpoint(request);
    }
    // Once does: what made a rank ask for it is known from then on. Twice, and then it is said as a failure.
    for (int more = 2; !outcome.ok && heard_.again && more > 0; --more) {
        spdlog::info("another one at once");
        outcome = checkpoint(request);
    }
    answer(request, outcome);
    if (outcome.ok && request.stop) {
        stopped_ = true;
        say(fmt::format("checkpointed and stopped: `fermata restart --ckpt-dir {}` continues it{}",
                        shell_quoted(settings_.ckpt_dir), settings_.key ? " (with its --encrypt-key)" : ""));
    }
    if (!outcome.ok && request.origin == "signal" && request.stop)
        hand_on(SIGTERM, false);  // asked to go: without a checkpoint, then
    plan_next();
}

void Root::answer(const Request& request, const Outcome& outcome) {
    last_ = outcome;
    if (outcome.ok) last_bytes_ = outcome.bytes, last_seconds_ = outcome.seconds;
    if (request.client >= 0) {
        json phases = json::object();
        for (auto& [name, seconds] : outcome.phases) phases[name] = seconds;
        control_.say(request.client,
                     dump({{"done", true},
                           {"ok", outcome.ok},
                           {"code", static_cast<int>(outcome.ok ? ExitCode::ok : outcome.code)},
                           {"line", outcome.line},
                           {"detail", outcome.detail},
                           {"job", settings_.job},
                           {"generation", outcome.generation},
                           {"directory", settings_.ckpt_dir},
                           {"bytes", outcome.bytes},
                           {"seconds", outcome.seconds},
                           {"phases", phases},
                           {"warnings", outcome.warnings},
                           {"diagnosis", outcome.diagnosis}}));
        control_.finish(request.client);
    } else if (!mpiexec_status_ || outcome.ok) {
        // Nobody asked by hand: failures are said, successes only on request. An interval that fell into the
        // end of the job is nobody's failure; of a rank's death mpiexec tells.
        if (!outcome.ok && somebody_gone_.empty())
            say(fmt::format("checkpoint ({}): {}", request.origin, outcome.line));
        else if (outcome.ok && settings_.verbose)
            say(fmt::format("{} ({})", outcome.line, outcome.detail));
        else if (outcome.ok && request.stop)
            say(outcome.line);
    }
}

void Root::release_finalize() {
    if (finalize_released_ || roster_.size() == 0 || finalized_ < static_cast<uint32_t>(roster_.size()))
        return;
    finalize_released_ = true;
    next_due_ = 0;
    tree_.broadcast(wire::FinalizeReleased{});
}

// Ends the launcher and with it the ranks. Open MPI 4.1.4 ends its ranks on SIGTERM without a word, but says
// a lot when ranks leave on their own; it waits a second for them (odls_base_sigkill_timeout).
// MPICH: docs/internals/job.md, the ranks of a stopped job.
void Root::end_mpiexec() {
    hand_on(SIGTERM, false);
    if (suspended_) go_on();
    int64_t start = tree::now_ms();
    bool helped = false;
    while (!mpiexec_status_) {
        serve(20);
        int64_t waited = tree::now_ms() - start;
        // Not sooner: the program's last lines go through the launcher.
        if (!helped && waited > 2000) {
            tree_.broadcast(wire::Kill{});
            helped = true;
        }
        if (waited > 10000) {
            ::kill(mpiexec_, SIGKILL);
            start = tree::now_ms();
        }
    }
}

// Nothing of the job is left running: what the launcher did not end, the node daemons do.
void Root::clear_up() {
    tree_.broadcast(wire::Kill{});
    int64_t end = tree::now_ms() + 5000;
    while (!tree_.nodes().empty() && tree::now_ms() < end) serve(20);
}

// MPICH's mpiexec may exit with 0 when a signal has ended it, and does when ranks leave without MPI_Finalize.
bool Root::came_to_its_end() const {
    bool no_program = roster_.size() == 0;
    return signal_to_end_ == 0 && (finalize_released_ || no_program || node_lost_);
}

int Root::exit_code() const {
    if (stopped_) return static_cast<int>(ExitCode::to_be_continued);
    if (fatal_) return fatal_->code;
    if (cancelled_) return 128 + SIGTERM;
    int status = mpiexec_status_.value_or(0);
    if (status == 0 && signal_to_end_ != 0) return 128 + signal_to_end_;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Young's and Daly's first-order optimum from the measured cost of the last checkpoint.
double Root::next_interval() const {
    if (settings_.interval >= 0) return settings_.interval;
    if (last_cost_ <= 0) return std::min(60.0, settings_.mtbf / 100);  // the first one measures
    return std::max(std::sqrt(2 * last_cost_ * settings_.mtbf) - last_cost_, last_cost_ * 2);
}

void Root::plan_next() {
    if (settings_.interval == 0 || finalize_released_) return;
    next_due_ = tree::now_ms() + std::max<int64_t>(1, static_cast<int64_t>(next_interval() * 1000));
}

// When to begin the last checkpoint so that it is committed within the wall time: twice what the last one
// took, or a tenth of the time as long as none has been measured.
int64_t Root::stop_due() const {
    double t = settings_.walltime;
    double margin = last_seconds_ > 0 ? 2 * last_seconds_ + 0.02 * t : 0.1 * t;
    return started_ + static_cast<int64_t>(1000 * std::max(t - margin, t / 2));
}

// ---- events

void Root::serve(int timeout_ms) {
    if (next_due_ && !in_checkpoint_)
        timeout_ms = static_cast<int>(std::clamp<int64_t>(next_due_ - tree::now_ms(), 0, timeout_ms));
    timeout_ms = tree_.rest(timeout_ms);
    std::vector<pollfd> fds;
    fds.push_back({signals_.get(), POLLIN, 0});
    size_t control = fds.size();
    control_.add_to(fds);
    size_t tree = fds.size();
    tree_.add_to(fds);
    size_t input = fds.size();
    if (input_) input_->add_to(fds);
    if (::poll(fds.data(), fds.size(), timeout_ms) < 0) return;
    if (fds[0].revents) signals();
    control_.serve(fds, control);
    tree_.serve(fds, tree);
    if (input_) input_->serve(fds, input);
    // After the ranks' last words.
    int status;
    if (child_ended_ && ::waitpid(mpiexec_, &status, WNOHANG) == mpiexec_) mpiexec_status_ = status;
    child_ended_ = false;
    pump_clock();
    if (!status_clients_.empty() && (!query_end_ || query_done())) give_status();
}

void Root::joined(int node, const wire::Hello& hello) {
    bool first = roster_.size() == 0;
    if (std::string why = roster_.join(node, hello); !why.empty()) {
        fatal_ = wire::Fatal{"error: " + why, static_cast<int>(ExitCode::failed)};
        return;
    }
    if (first) {
        mpi_ = hello.mpi;
        mpi_version_ = hello.mpi_version;
        if (settings_.expected_ranks > 0 && !settings_.restored.empty() &&
            roster_.size() != settings_.expected_ranks)
            fatal_ = wire::Fatal{fmt::format("error: generation {} has {} ranks, but mpiexec started {}",
                                             settings_.restored, settings_.expected_ranks, roster_.size()),
                                 static_cast<int>(ExitCode::failed)};
    }
    tree_.expect(node, ++tree_.nodes()[node].ranks);
    if (auto starter = starters_.find(hello.rank); starter != starters_.end()) {
        // The same process has become the program (exec): nothing is left that waits for it.
        if (starter->second.pid != hello.pid) waiting_starter_ = starter->second.program;
        starters_.erase(starter);
        starters_since_ = tree::now_ms();
    }
    if (everybody_is_here() && settings_.restored.empty()) {
        running_ = true;
        plan_next();
    }
}

bool Root::over() const { return mpiexec_status_ || stopped_ || fatal_ || cancelled_; }

bool Root::everybody_is_here() const { return roster_.complete(); }

// Why the job is not running yet, in one line.
std::string Root::who_is_missing() const {
    if (!starters_.empty()) return who_is_in_a_starter();
    if (auto behind = furthest_behind()) {
        std::string who = behind->there > 1
                              ? fmt::format("{} and {} more are", behind->rank, behind->there - 1)
                              : fmt::format("{} is", behind->rank);
        return fmt::format("of {} ranks, rank {} in phase {}", behind->ranks, who,
                           wire::name_of(behind->phase));
    }
    if (roster_.size() == 0)
        return settings_.expected_ranks > 0
                   ? fmt::format("none of {} ranks has reported", settings_.expected_ranks)
                   : "no rank has reported";
    if (everybody_is_here())
        return fmt::format("{} of {} ranks have loaded their image", restored_ranks_, roster_.size());
    return fmt::format("{} of {} ranks have not reported: {}", roster_.size() - roster_.here(),
                       roster_.size(), roster_.missing(200));
}

// The phases that ranks say, once all have said one.
std::optional<wire::Phase> Root::furthest_behind() const {
    auto behind = phases_.furthest_behind();
    auto all = static_cast<uint32_t>(std::max(roster_.size(), settings_.expected_ranks));
    return behind && behind->ranks >= all ? behind : std::nullopt;
}

// What the start waits for: the launcher, then ranks that come, then (restart) the phases of their own.
const char* Root::start_phase() const {
    if (auto behind = furthest_behind()) return wire::name_of(behind->phase);
    return tree_.nodes().empty() ? "launcher" : "ranks";
}

std::string Root::who_is_in_a_starter() const {
    auto& [rank, starter] = *starters_.begin();
    std::string who = starters_.size() > 1
                          ? fmt::format("rank {} and {} more are", rank, starters_.size() - 1)
                          : fmt::format("rank {} is", rank);
    return fmt::format("{} started an MPI program yet: {} in {} (pid {})",
                       roster_.size() == 0 ? "no rank has" : "not every rank has", who, starter.program,
                       starter.pid);
}

// A start that takes long is spoken of, and one that takes too long is ended: nobody waits in silence.
void Root::watch_start() {
    if (running_ || finalize_released_ || fatal_ || mpiexec_status_) return;
    if (!starters_.empty()) return;  // scripts may prepare for hours, and need not start anything
    int64_t waited = tree::now_ms() - std::max(started_, starters_since_);
    bool over = settings_.limits.start > 0 && static_cast<double>(waited) > settings_.limits.start * 1000;
    if (!over && waited < start_word_) return;
    start_word_ = 2 * waited;
    std::string who = who_is_missing(), diagnosis = diagnose();
    if (!diagnosis.empty()) diagnosis = ":\n" + diagnosis;
    if (running_ || fatal_ || mpiexec_status_) return;  // it came meanwhile
    if (over)
        fatal_ = wire::Fatal{fmt::format("error: the job did not start in {:.0f} s (--start-timeout): {}{}",
                                         settings_.limits.start, who, diagnosis),
                             static_cast<int>(ExitCode::failed)};
    else
        say(fmt::format("the job has not started after {} s: {}{}", waited / 1000, who, diagnosis));
}

void Root::from_node(int node, const wire::Message& message) {
    spdlog::debug("node {}: {}", node, wire::name_of(message));
    auto current = [&](uint32_t epoch) { return in_checkpoint_ && epoch == epoch_; };
    if (auto* m = std::get_if<wire::Clock>(&message)) {
        auto child = clock_child_.find(node);
        if (clock_ && child != clock_child_.end() &&
            !clock_->from_child(child->second, wire::plain(m->bytes),
                                static_cast<uint64_t>(tree::now_ms()) * 1000000) &&
            heard_.refusal.empty())
            heard_.refusal = fmt::format("the protocol broke: from the node daemon on {}: {}",
                                         tree_.nodes()[node].host, clock_->error());
    } else if (auto* m = std::get_if<wire::Joined>(&message)) {
        for (const wire::Hello& hello : m->ranks) joined(node, hello);
    } else if (auto* m = std::get_if<wire::InStarter>(&message)) {
        if (m->error.empty()) {
            starters_[m->rank] = {m->pid, m->program};
            starters_since_ = tree::now_ms();
        } else if (!fatal_) {
            fatal_ = wire::Fatal{"error: " + m->error, static_cast<int>(ExitCode::failed)};
        }
    } else if (auto* m = std::get_if<wire::RankGone>(&message)) {
        roster_.leave(node, m->rank);
        if (!m->clean && somebody_gone_.empty())
            somebody_gone_ = fmt::format("rank {} (pid {} on {}) is gone", m->rank, m->pid, m->host);
    } else if (auto* m = std::get_if<wire::Refuse>(&message)) {
        if (current(m->epoch) && heard_.refusal.empty()) heard_.refusal = m->why;
    } else if (auto* m = std::get_if<wire::Again>(&message)) {
        if (!current(m->epoch) || !heard_.refusal.empty()) return;
        heard_.refusal = m->why;
        heard_.again = true;
    } else if (auto* m = std::get_if<wire::Closed>(&message)) {
        if (current(m->epoch)) heard_.closed += m->ranks;
    } else if (auto* m = std::get_if<wire::Frozen>(&message)) {
        if (current(m->epoch)) heard_.frozen += m->ranks;
    } else if (auto* m = std::get_if<wire::Drained>(&message)) {
        if (!current(m->epoch) || m->round != heard_.round) return;
        heard_.drained += m->ranks;
        heard_.sent += m->sent;
        heard_.received += m->received;
        heard_.open += m->open;
    } else if (auto* m = std::get_if<wire::Captured>(&message)) {
        if (current(m->epoch)) heard_.captured += m->ranks;
    } else if (auto* m = std::get_if<wire::SizedList>(&message)) {
        if (current(m->epoch)) heard_.sized.insert(heard_.sized.end(), m->parts.begin(), m->parts.end());
    } else if (auto* m = std::get_if<wire::SavedList>(&message)) {
        if (!current(m->epoch)) return;
        for (const wire::Saved& image : m->images) {
            heard_.suspend_us = std::max(heard_.suspend_us, image.suspend_us);
            if (image.error.empty())
                heard_.saved.push_back(image);
            else if (heard_.save_error.empty())
                heard_.save_error = image.error;
        }
    } else if (auto* m = std::get_if<wire::Resumed>(&message)) {
        if (current(m->epoch)) heard_.resumed += m->ranks;
    } else if (auto* m = std::get_if<wire::ArrivedFinalize>(&message)) {
        finalized_ += m->ranks;
    } else if (auto* m = std::get_if<wire::Restored>(&message)) {
        if (over()) return;
        if (!m->ok) {
            if (!fatal_)
                fatal_ = wire::Fatal{
                    fmt::format("error: cannot restart from {}: {}", settings_.restored, m->error),
                    static_cast<int>(ExitCode::failed)};
            return;
        }
        restored_ranks_ += m->ranks;
        if (roster_.size() > 0 && restored_ranks_ == static_cast<uint32_t>(roster_.size())) {
            tree_.broadcast(wire::Go{});
            phases_.clear();
            running_ = true;
            plan_next();
        }
    } else if (auto* m = std::get_if<wire::Phase>(&message)) {
        phases_.said(node, *m);
    } else if (auto* m = std::get_if<wire::Diagnosis>(&message)) {
        if (!query_end_) return;
        if (diagnosis_.size() < 100000) diagnosis_ += m->text;
        ++query_nodes_;
    } else if (auto* m = std::get_if<wire::Warning>(&message)) {
        say(m->text);
        if (m->epoch != 0 && current(m->epoch)) heard_.warnings.add(m->text);
    } else if (auto* m = std::get_if<wire::Fatal>(&message)) {
        if (!fatal_) fatal_ = *m;
    }
}

void Root::lost_node(int node, const tree::NodeInfo& info) {
    bool served = roster_.lose(node) > 0;
    phases_.gone(node);
    // A rank that was with it cannot report any more, and one that comes now may find none and end, which
    // MPICH's Hydra does not notice before MPI_Init: the others would wait there.
    if (!info.spare && !running_ && !finalize_released_ && !over()) {
        std::string which = info.host.empty()
                                ? "a node daemon"
                                : fmt::format("the node daemon of {} (pid {})", info.host, info.pid);
        fatal_ = wire::Fatal{fmt::format("error: {} has ended before the job ran: start it again", which),
                             static_cast<int>(ExitCode::failed)};
        return;
    }
    if (!served) return;
    node_lost_ = true;
    if (somebody_gone_.empty()) somebody_gone_ = fmt::format("the node daemon of {} is gone", info.host);
    // Its ranks go into the real MPI_Finalize by themselves, and nobody will hear of them.
    tree_.broadcast(wire::FinalizeReleased{});
}

void Root::pump_clock() {
    if (!clock_) return;
    clock_->poll(static_cast<uint64_t>(tree::now_ms()) * 1000000);
    clock::Bytes bytes;
    while (clock_->next_down(&bytes)) tree_.broadcast(wire::Clock{wire::packed(bytes)});
}

// ---- status

void Root::start_query() {
    if (query_end_) return;
    diagnosis_.clear();
    query_nodes_ = 0;
    query_end_ = tree::now_ms() + 8000;
    tree_.broadcast(wire::Query{});
}

bool Root::query_done() const { return query_nodes_ >= tree_.nodes().size() || tree::now_ms() >= query_end_; }

std::string Root::status_json() {
    std::string state = suspended_                   ? "suspended"
                        : in_checkpoint_ && running_ ? "checkpointing"
                        : finalize_released_         ? "finishing"
                        : !somebody_gone_.empty()    ? "broken"
                        : running_                   ? "running"
                                                     : "starting";
    json nodes = json::array();
    for (auto& [id, node] : tree_.nodes()) nodes.push_back({{"host", node.host}, {"ranks", node.ranks}});
    json ranks = json::array();
    for (auto& [number, rank] : roster_.ranks()) {
        auto node = tree_.nodes().find(rank.node);
        if (node != tree_.nodes().end())
            ranks.push_back({{"rank", number}, {"pid", rank.pid}, {"host", node->second.host}});
    }
    const bool starting = !running_ && !finalize_released_;
    json behind;
    if (auto phase = furthest_behind(); phase && starting)
        behind = {{"phase", wire::name_of(phase->phase)},
                  {"rank", phase->rank},
                  {"there", phase->there},
                  {"ranks", phase->ranks}};
    json last;
    if (!last_.line.empty())
        last = {{"ok", last_.ok}, {"generation", last_.generation}, {"line", last_.line}};
    return dump({{"done", true},
                 {"code", 0},
                 {"job", settings_.job},
                 {"pid", ::getpid()},
                 {"state", state},
                 {"phase", !phase_.empty()       ? phase_
                           : state == "starting" ? start_phase()
                                                 : state},
                 {"behind", behind},
                 {"size", roster_.size()},
                 {"expected", settings_.expected_ranks},
                 {"missing", starting ? who_is_missing() : ""},
                 {"ranks", ranks},
                 {"nodes", nodes},
                 {"mpi", mpi_},
                 {"mpi_version", mpi_version_},
                 {"protocol", settings_.protocol},
                 {"ckpt_dir", settings_.ckpt_dir},
                 {"ckpt_dir_file", file_id(settings_.ckpt_dir)},
                 {"command", store::whole_command(settings_.command, settings_.segments)},
                 {"seconds", static_cast<double>(tree::now_ms() - started_) / 1000},
                 {"checkpoints", checkpoints_},
                 {"restored", settings_.restored},
                 {"trouble", somebody_gone_},
                 {"last", last},
                 {"diagnosis", query_end_ ? diagnosis_ : ""},
                 {"diagnosed", query_end_ && query_nodes_ >= tree_.nodes().size()}});
}

void Root::give_status() {
    std::string json = status_json();
    query_end_ = 0;
    std::vector<int> clients = std::move(status_clients_);
    status_clients_.clear();
    for (int client : clients) {
        control_.say(client, json);
        control_.finish(client);
    }
}

}  // namespace fermata::root
