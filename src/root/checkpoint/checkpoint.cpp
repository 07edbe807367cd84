#include "root/checkpoint/checkpoint.h"

#include <time.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/log.h"
#include "base/text.h"
#include "root/checkpoint/times.h"
#include "tree/channel.h"

namespace fermata::root {
namespace {

int64_t now_us() { return static_cast<int64_t>(monotonic_ns() / 1000); }

// Time as the clock above the ranks takes it.
uint64_t now_ns() { return static_cast<uint64_t>(tree::now_ms()) * 1000000; }

constexpr double kStarterPatience = 3;  // seconds
constexpr int64_t kSlowPhaseUs = 2'000'000;

}  // namespace

// The phases have the same names here, in docs/architecture.md and in `fermata status`.
void Checkpoint::phases(const Request& request) {
    const double end = attempt_.start + (request.timeout > 0 ? request.timeout : settings_.limits.checkpoint);
    enter("request");
    wait_for_start(request, end);
    if (settings_.message_log && request.renewal) return renew_anywhere(request, end);
    if (!request.elsewhere.empty()) return copy_elsewhere(request, end);
    if (!request.renewal) begin(end);
    if (settings_.message_log)
        stand_to_save(end);
    else
        come_to_safe_state(end);
    if (request.renewal) return renew(request, end);

    enter("suspend");  // and save
    save(request, request.timeout > 0 ? end : monotonic_s() + settings_.limits.save);

    leave_phase();
    commit();

    enter("resume");
    resume(request.stop);
    leave_phase();
    conclude();
}

void Checkpoint::come_to_safe_state(double end) {
    tell_ranks();

    enter("targets");
    until([&] { return clock_->phase() != clock::Root::Phase::request; }, end,
          "every rank to report its collectives");

    enter("converge");
    until([&] { return clock_->declared(); }, end, "the ranks to reach a safe state");
    attempt_.standing = monotonic_s();

    enter("freeze");
    freeze(end);

    enter("drain");
    drain(end);
}

Outcome Checkpoint::take(const Request& request, store::LevelName level, uint64_t expected) {
    always(!attempt_.in_progress && !clock_, "a checkpoint that begins while one is in progress");
    Attempt fresh;
    fresh.level = level;
    fresh.expected = expected;
    fresh.epoch = std::max(attempt_.epoch, settings_.first_epoch()) + 1;
    fresh.in_progress = true;
    fresh.renews = request.renewal.has_value();
    fresh.stops = request.stop;
    fresh.client = request.client;
    fresh.start = monotonic_s();
    attempt_ = std::move(fresh);
    tally_.forget();
    Outcome& now = attempt_.outcome;
    try {
        phases(request);
    } catch (const Abandoned& reason) {
        now.code = reason.code;
        take_back(reason.why);
    } catch (const Error& error) {  // the store: no space, not writable, …
        now.code = error.code();
        take_back(error.what());
    } catch (const std::exception& error) {
        take_back(line_of(error));
    }
    now.warnings = tally_.answers().warnings.lines();
    attempt_.in_progress = false;
    clock_.reset();
    attempt_.phase.clear();
    return std::move(now);
}

void Checkpoint::wait_for_start(const Request& request, double end) {
    if (std::string why = request.renewal ? job_.why_no_renewal(*request.renewal) : ""; !why.empty())
        throw Abandoned{why, ExitCode::refused};
    if (job_.state().finalized)
        throw Abandoned{
            "every rank has called MPI_Finalize: what the program does after it is in no checkpoint",
            ExitCode::refused};
    auto in_starters = [&] {
        // A person who asks shall not wait for the whole time: the script may prepare for hours.
        return request.client >= 0 && monotonic_s() - attempt_.start > kStarterPatience &&
               !job_.who_is_in_a_starter().empty();
    };
    auto is_ready = [&] {
        const Job::State job = job_.state();
        return job.running && job.whole;
    };
    until([&] { return is_ready() || in_starters(); }, end, "the job to start");
    if (!job_.state().running)
        throw Abandoned{fmt::format("{}; ask again when it has", job_.who_is_in_a_starter()),
                        ExitCode::refused};
}

// The generation's directory.
void Checkpoint::begin(double end) {
    always(!attempt_.begun, "a generation that begins when ranks have heard of it");
    attempt_.generation = store_.begin();
    try {
        make_room(end);
    } catch (...) {
        store_.abandon(std::exchange(attempt_.generation, {}));  // no rank has heard of it
        throw;
    }
    attempt_.outcome.generation = Generation(attempt_.generation.number);
}

void Checkpoint::tell_ranks() {
    always(!attempt_.begun && !clock_, "ranks that are told twice of one checkpoint");
    attempt_.disturbed.clear();
    attempt_.begun = true;
    clock_child_.clear();
    for (const Job::Daemon& daemon : job_.daemons()) clock_child_.emplace(daemon.child, clock_child_.size());
    clock_ = std::make_unique<clock::Root>(clock_child_.size());
    ask(wire::Begin{attempt_.epoch, attempt_.outcome.generation});
    clock_->begin(attempt_.epoch, now_ns());
    pump_clock();
}

// Room is asked for first: the generation goes to the next level when a node has none to give.
void Checkpoint::make_room(double end) {
    if (attempt_.level != store::LevelName::files) {
        keeper_.ask_for_room(attempt_.epoch, Generation(attempt_.generation.number),
                             store::medium_of(attempt_.level), attempt_.copied);
        until([&] { return keeper_.room_everywhere() || !keeper_.why_no_room().empty(); }, end,
              "every node to look for room");
        if (const std::string why = keeper_.why_no_room(); !why.empty()) {
            const char* there = attempt_.level == store::LevelName::memory ? "memory" : "local directories";
            attempt_.level = store::LevelName::files;
            keeper_.clean_up();
            if (attempt_.copied.empty())
                say(fmt::format("{} goes to files, not to {}: {}",
                                Generation(attempt_.generation.number).name(), there, why));
        }
    }
    if (attempt_.level == store::LevelName::files)
        store_.check_space(attempt_.expected + attempt_.expected / 10);
}

void Checkpoint::freeze(double end) {
    always(clock_ && clock_->declared(), "ranks are frozen before the safe state is declared");
    ask(wire::Freeze{attempt_.epoch});
    pump_clock();  // its word goes with the order
    if (clock_->synchronous_sends()) {
        // A thread may stand only once its message is taken, and none may be taken before all have closed.
        until([&] { return tally_.answers().closed.ranks == job_.ranks(); }, end, "every rank to close");
        job_.tell(wire::Take{attempt_.epoch});
    }
    until([&] { return tally_.answers().frozen.ranks == job_.ranks(); }, end, "every thread to stand");
}

// Rounds until what was sent was received, and nothing is open.
void Checkpoint::drain(double end) {
    always(tally_.answers().frozen.ranks == job_.ranks(), "a drain before every thread stands");
    const auto& heard = tally_.answers().drained;
    for (uint32_t round = 1;; ++round) {
        ask(wire::Drain{attempt_.epoch, round});
        until([&] { return heard.ranks == job_.ranks(); }, end, "every rank to drain");
        if (heard.sent == heard.received && heard.open == 0) return;
        if (round % 1000 == 0)
            spdlog::warn("drain: {} sent, {} received, {} open", heard.sent, heard.received, heard.open);
        // Messages on their way need a moment: 1 ms, then longer.
        double pause = monotonic_s() + std::min(0.001 * round, 0.05);
        std::string what = fmt::format(
            "messages and collectives on their way to end ({} messages sent, {} received, {} operations "
            "open)",
            heard.sent, heard.received, heard.open);
        until([&] { return monotonic_s() >= pause; }, end, what.c_str());
    }
}

void Checkpoint::save(const Request& request, double end) {
    always(attempt_.begun && attempt_.outcome.generation, "a save for no generation");
    const auto& heard = tally_.answers();
    const auto all = job_.ranks();
    image::SaveOptions options = settings_.save_options;
    // They stand for no safe state, so they shall not stand for the writing either.
    if (settings_.message_log) options.forked = true;
    // Nobody goes on after the last one.
    if (request.stop) options.forked = false;
    const bool forked = options.forked;
    // Images may refer to this one: a rank cannot know whether its last one was committed.
    const bool on_nodes = attempt_.level != store::LevelName::files;
    options.base = keeper_.on() ? keeper_.base_at(attempt_.level).number() : newest_.number();
    attempt_.parts = store::Parts(options.write.layout, daemon_of_ranks());
    attempt_.parts.create(attempt_.generation.folder);
    wire::Save order{attempt_.epoch, on_nodes ? "" : attempt_.generation.directory,
                     attempt_.outcome.generation, options.to_text()};
    if (on_nodes) order.medium = store::medium_of(attempt_.level);
    if (settings_.message_log) order.uses = shared_of_ranks();
    ask(order);
    if (attempt_.parts.together()) {
        until([&] { return give_up_on_save_error(), heard.sized == all; }, end, "every rank to say its size");
        lay_out_parts();
    }
    if (forked) return written_behind(end);
    until([&] { return give_up_on_save_error(), heard.saved == all; }, end, "every rank to write its image");
    // The ranks suspend their threads and write in one go: the agents' clocks tell where one ends.
    leave_phase();
    auto& [name, seconds] = attempt_.outcome.phases.back();
    double both = seconds;
    seconds = std::min(both, static_cast<double>(heard.suspend_us) * 1e-6);
    attempt_.outcome.phases.emplace_back("save", both - seconds);
}

void Checkpoint::give_up_on_save_error() const {
    if (const std::string& error = tally_.answers().save_error; !error.empty()) throw Abandoned{error};
}

// Writers hold the ranks' memory: the job goes on while they write.
void Checkpoint::written_behind(double end) {
    const auto& heard = tally_.answers();
    const auto all = job_.ranks();
    until([&] { return give_up_on_save_error(), heard.captured.ranks == all || heard.saved == all; }, end,
          "every rank to be captured");
    job_.tell(wire::Resume{attempt_.epoch});
    attempt_.going_on = monotonic_s();
    enter("save");
    until([&] { return give_up_on_save_error(), heard.saved == all; }, end, "every rank to write its image");
}

// By rank, its answer to AskLog.
std::vector<wire::Bytes> Checkpoint::shared_of_ranks() const {
    std::vector<wire::Bytes> all(job_.ranks());
    tally_.each_log(
        [&](int32_t rank, const wire::Bytes& bytes) { all.at(static_cast<size_t>(rank)) = bytes; });
    return all;
}

// By rank, what its node daemon has for a number.
std::vector<uint32_t> Checkpoint::daemon_of_ranks() const {
    std::vector<uint32_t> daemons(job_.ranks());
    for (const Job::Daemon& daemon : job_.daemons())
        daemon.ranks.each(
            [&](int32_t rank) { daemons.at(static_cast<size_t>(rank)) = static_cast<uint32_t>(daemon.id); });
    return daemons;
}

// By rank, the node that has its image.
std::vector<std::string> Checkpoint::nodes_of_ranks() const {
    std::vector<std::string> nodes(job_.ranks());
    for (const Job::Daemon& daemon : job_.daemons())
        daemon.ranks.each([&](int32_t rank) { nodes.at(static_cast<size_t>(rank)) = daemon.host; });
    return nodes;
}

// The ranks stand and wait for it.
void Checkpoint::lay_out_parts() {
    std::vector<uint64_t> rooms(job_.ranks());
    tally_.each_size([&](int32_t rank, uint64_t bytes) { rooms.at(static_cast<size_t>(rank)) = bytes; });
    always(rooms.size() == tally_.answers().sized, "places for ranks that have not said their size");
    attempt_.parts.lay_out(rooms);
    attempt_.parts.finish(attempt_.generation.folder, settings_.job_number, attempt_.generation.number);
    for (const Job::Daemon& daemon : job_.daemons()) {
        wire::Places places{attempt_.epoch, daemon.ranks.runs(), {}};
        daemon.ranks.each([&](int32_t rank) {
            places.begins.push_back(attempt_.parts.begin_of(Rank(static_cast<uint32_t>(rank))));
        });
        job_.tell(daemon.id, places);
    }
}

void Checkpoint::commit() {
    store::Manifest contents = manifest();  // with the times of all phases so far
    always(contents.generation == attempt_.generation.number, "a manifest of another generation");
    always(contents.on_nodes() == (attempt_.level != store::LevelName::files),
           "a manifest of another level than the checkpoint");
    enter("commit");
    if (attempt_.level != store::LevelName::files)
        store_.commit_on_nodes(attempt_.generation, contents);
    else
        store_.commit(attempt_.generation, contents);
    newest_ = Generation(attempt_.generation.number);
    job_.committed(attempt_.epoch);
    attempt_.generation.manifest = std::move(contents);
    attempt_.outcome.bytes = attempt_.generation.bytes();
    attempt_.saved = std::move(*attempt_.generation.manifest);
    attempt_.times = tally_.block_times();
    attempt_.generation = {};
    attempt_.begun = false;
}

store::Manifest Checkpoint::manifest() const {
    store::Manifest m = job_.manifest();
    m.generation = attempt_.generation.number;
    m.level = attempt_.level;
    if (m.on_nodes()) m.nodes = nodes_of_ranks();
    m.created = local_time_text(::time(nullptr));
    for (auto& [name, seconds] : attempt_.outcome.phases) m.phases[name] = seconds;
    m.images.reserve(job_.ranks());
    tally_.each_image([&](int32_t number, const wire::ImageRecord& image) {
        const Rank rank(static_cast<uint32_t>(number));
        m.images.push_back({rank, image::image_name(rank), image.bytes, image::Checksum{image.checksum}, 0});
    });
    std::sort(m.images.begin(), m.images.end(), [](auto& a, auto& b) { return a.rank < b.rank; });
    always(m.images.size() == job_.ranks(), "a manifest without every rank");
    for (size_t i = 0; i < m.images.size(); ++i)
        always(m.images[i].rank.index() == i, "a manifest with a rank twice");
    attempt_.parts.note_in(m);
    if (settings_.message_log) m.message_log = {attempt_.epoch, settings_.replicas, settings_.log_memory};
    for (Generation needed : tally_.needs()) m.needs.push_back(needed.number());
    return m;
}

void Checkpoint::resume(bool stop) {
    // The ranks stay frozen until the launcher ends them (end_launcher).
    if (stop) return job_.tell(wire::Leave{attempt_.epoch});
    // (Ranks that went on with a forked writer may have said so already.)
    const auto& heard = tally_.answers().resumed;
    if (heard.ranks < job_.ranks()) ask(wire::Resume{attempt_.epoch});
    // One that dies now has a copy, which has no part in this, or the job ends. (Whoever is told of what
    // comes next has been told to resume before.)
    auto all = [&] { return std::min(job_.ranks(), static_cast<uint32_t>(job_.state().here)); };
    until([&] { return heard.ranks >= all() || job_.state().replaced; },
          monotonic_s() + settings_.limits.resume, "every rank to resume");
}

journal::Measured Checkpoint::what_was_measured(double ended) const {
    double until_saving = 0;
    for (auto& [name, seconds] : attempt_.outcome.phases) {
        if (name == "save") break;
        until_saving += seconds;
    }
    const double all = ended - attempt_.start;
    journal::Measured one;
    one.until_saving = std::min(until_saving, all);
    one.writing = all - one.until_saving;
    one.standing = (attempt_.going_on > 0 ? attempt_.going_on : ended) - attempt_.standing;
    one.behind = attempt_.going_on > 0 ? ended - attempt_.going_on : 0;
    one.bytes = attempt_.outcome.bytes;
    return one;
}

void Checkpoint::note_times() {
    auto host_of = [this](Rank rank) {
        for (const Job::Daemon& daemon : job_.daemons())
            if (daemon.ranks.contains(static_cast<int32_t>(rank.number()))) return daemon.host;
        return std::string();
    };
    nlohmann::json fields = times_for_journal(attempt_.times, job_.ranks(), host_of);
    if (fields.is_null()) return;
    fields["generation"] = attempt_.outcome.generation.name();
    job_.note(journal::Kind::ranks, std::move(fields));
}

// Notes the result, and what it means for the next one.
void Checkpoint::conclude() {
    always(!attempt_.begun && attempt_.saved.generation > 0, "the end of a checkpoint that is not committed");
    Outcome& now = attempt_.outcome;
    const double ended = monotonic_s();
    note_times();
    now.seconds = monotonic_s() - attempt_.start;
    now.measured = what_was_measured(ended);
    const bool memory = attempt_.level == store::LevelName::memory,
               on_nodes = attempt_.level != store::LevelName::files;
    if (memory)
        keeper_.planned().memory(now.measured.cost(), now.bytes);
    else if (!keeper_.why_no_room().empty())
        keeper_.planned().no_memory(now.measured.cost());
    if (settings_.keep > 0) store_.retain(settings_.keep);
    store_.remove_left_behind();
    keeper_.committed(std::exchange(attempt_.saved, {}), tree::now_ms());
    now.ok = true;
    ++good_;
    for (auto& [name, seconds] : now.phases)
        now.detail += fmt::format("{}{} {:.3f} s", now.detail.empty() ? "" : ", ", name, seconds);
    now.line =
        fmt::format("{} in {}: {} in {:.2f} s", now.generation.name(),
                    on_nodes ? keeper_.where() : settings_.ckpt_dir, human_size(now.bytes), now.seconds);
}

// ---- the means

void Checkpoint::ask(const wire::Message& question) {
    tally_.ask(question);
    job_.tell(question);
}

void Checkpoint::enter(const char* phase) {
    always(attempt_.in_progress, "a phase of a checkpoint that is not in progress");
    leave_phase();
    attempt_.phase = phase;
    attempt_.phase_start_us = now_us();
    spdlog::info("checkpoint {}: {}", attempt_.epoch, phase);
    if (attempt_.client >= 0) job_.entered(attempt_.client, phase);
}

void Checkpoint::leave_phase() {
    if (!attempt_.phase.empty()) {
        const double seconds = static_cast<double>(now_us() - attempt_.phase_start_us) * 1e-6;
        attempt_.outcome.phases.emplace_back(attempt_.phase, seconds);
        nlohmann::json fields = {{"phase", attempt_.phase},
                                 {"seconds", seconds},
                                 {"generation", attempt_.outcome.generation.name()},
                                 {"last", std::exchange(attempt_.last_heard, {})}};
        if (attempt_.slow == Attempt::Slow::asked) attempt_.waits = job_.who_waits(true).value_or("");
        if (!attempt_.waits.empty()) fields["waits"] = std::exchange(attempt_.waits, {});
        attempt_.slow = Attempt::Slow::not_yet;
        job_.note(journal::Kind::phase, std::move(fields));
    }
    attempt_.phase.clear();
}

// A phase that takes long: who waits where is for the journal, and asked once.
void Checkpoint::ask_who_holds_it_up() {
    if (attempt_.slow == Attempt::Slow::asked)
        if (auto waits = job_.who_waits(false)) {
            attempt_.slow = Attempt::Slow::known;
            attempt_.waits = std::move(*waits);
        }
    if (attempt_.slow != Attempt::Slow::not_yet || now_us() - attempt_.phase_start_us < kSlowPhaseUs) return;
    if (job_.ask_who_waits()) attempt_.slow = Attempt::Slow::asked;
}

void Checkpoint::give_up_if_it_cannot_succeed() {
    const std::string& refusal = tally_.answers().refusal;
    if (!refusal.empty()) throw Abandoned{refusal, ExitCode::refused};
    if (const std::string why = job_.state().why_over; !why.empty()) throw Abandoned{why};
    if (!attempt_.renews && job_.state().replaced)
        throw Abandoned{"a rank has died, and its copy is about to take its place"};
    if (attempt_.begun && !attempt_.disturbed.empty()) throw Abandoned{attempt_.disturbed};
    if (attempt_.cancelled) throw Abandoned{"cancelled", ExitCode::refused};
}

// Serves everything else until `done`; gives the checkpoint up when it cannot succeed any more.
void Checkpoint::until(const std::function<bool()>& done, double end, const char* what) {
    for (;;) {
        give_up_if_it_cannot_succeed();
        if (done()) return;
        job_.watch();
        ask_who_holds_it_up();
        const double left = end - monotonic_s();
        if (left <= 0) {
            const std::string phase = attempt_.phase;
            attempt_.outcome.diagnosis = job_.diagnose();
            throw Abandoned{
                fmt::format("timeout in phase {} while waiting for {}{}{}", phase, what,
                            job_.state().running ? "" : " (" + job_.who_is_missing() + ")",
                            attempt_.outcome.diagnosis.empty() ? "" : ":\n" + attempt_.outcome.diagnosis),
                ExitCode::timeout};
        }
        // The clock's root wants to be polled every few milliseconds while the ranks converge.
        job_.serve(
            static_cast<int>(std::clamp(left * 1000, 1.0, clock_ && !clock_->declared() ? 5.0 : 50.0)));
    }
}

// The ranks forget the checkpoint, the store forgets the generation, the job goes on.
void Checkpoint::take_back(const std::string& why) {
    leave_phase();
    Outcome& now = attempt_.outcome;
    now.ok = false;
    now.line = why;
    if (now.bytes > 0) now.line += fmt::format("; generation {} is complete", now.generation.name());
    if (attempt_.begun) {
        attempt_.phase = "resume";
        always(attempt_.in_progress, "a checkpoint that is taken back and not in progress");
        ask(wire::Cancel{attempt_.epoch, why});
        // The dead do not resume: it is enough that all who are left do.
        auto left = [&](const Job::State& job) {
            return job.here - static_cast<int>(tally_.answers().resumed.ranks);
        };
        auto some_stand = [&](const Job::State& job) { return (left(job) > 0 || !job.whole) && !job.ended; };
        double end = monotonic_s() + settings_.limits.resume;
        for (Job::State job = job_.state(); some_stand(job) && monotonic_s() < end; job = job_.state()) {
            // A copy that has a rank's place since has not heard of this.
            if (job.lost || job.replaced) end = std::min(end, monotonic_s() + 2);
            job_.serve(50);
        }
        if (const Job::State job = job_.state(); some_stand(job) && !job.replaced)
            now.line += fmt::format("; {} of {} ranks have not gone on yet (fermata status --waits)",
                                    left(job), job.here);
        if (!attempt_.generation.directory.empty()) store_.abandon(attempt_.generation);
        keeper_.clean_up();
        attempt_.phase.clear();
    }
    spdlog::warn("checkpoint {} is given up: {}", attempt_.epoch, why);
}

// ---- the clock above the ranks

void Checkpoint::clock_from(int child, const wire::Clock& message, const std::string& host) {
    auto known = clock_child_.find(child);
    if (!clock_ || known == clock_child_.end()) return;
    if (!clock_->from_child(known->second, wire::plain(message.bytes), now_ns()))
        tally_.take(child, wire::Refuse{attempt_.epoch,
                                        fmt::format("the protocol broke: from the node daemon on {}: {}",
                                                    host, clock_->error())});
}

void Checkpoint::pump_clock() {
    if (!clock_) return;
    clock_->poll(now_ns());
    clock::Bytes bytes;
    while (clock_->next_down(&bytes)) job_.tell_children(wire::Clock{wire::packed(bytes)});
}

std::vector<int> Checkpoint::children_not_safe() const {
    std::vector<int> children;
    if (clock_ && !clock_->declared())
        for (auto& [id, child] : clock_child_)
            if (clock_->waiting_for(child)) children.push_back(id);
    return children;
}

}  // namespace fermata::root
