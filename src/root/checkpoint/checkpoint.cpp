// A checkpoint, as the root leads it: the list of its phases, and what it waits for in each.
#include <time.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/log.h"
#include "base/text.h"
#include "root/root.h"

namespace fermata::root {
namespace {

int64_t now_us() { return static_cast<int64_t>(monotonic_ns() / 1000); }

constexpr double kStarterPatience = 3;  // seconds
constexpr int64_t kSlowPhaseUs = 2'000'000;

}  // namespace

// The phases have the same names here, in docs/architecture.md and in `fermata status`.
void Root::take_checkpoint(const Request& request) {
    const double end = attempt_.start + (request.timeout > 0 ? request.timeout : settings_.limits.checkpoint);
    enter("request");
    wait_for_start(request, end);
    begin(end);

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

    enter("suspend");  // and save
    save(request, request.timeout > 0 ? end : monotonic_s() + settings_.limits.save);

    leave_phase();
    commit();

    enter("resume");
    resume(request.stop);
    leave_phase();
    conclude();
}

Outcome Root::checkpoint(const Request& request, store::LevelName level) {
    Attempt fresh;
    fresh.level = level;
    fresh.epoch = attempt_.epoch + 1;
    fresh.in_progress = true;
    fresh.stops = request.stop;
    fresh.client = request.client;
    fresh.start = monotonic_s();
    attempt_ = std::move(fresh);
    tally_.forget();
    Outcome& now = attempt_.outcome;
    try {
        take_checkpoint(request);
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

void Root::wait_for_start(const Request& request, double end) {
    if (finalize_released_)
        throw Abandoned{
            "every rank has called MPI_Finalize: what the program does after it is in no checkpoint",
            ExitCode::refused};
    auto in_starters = [&] {
        // A person who asks shall not wait for the whole time: the script may prepare for hours.
        return request.client >= 0 && start_.some_in_starters() &&
               monotonic_s() - attempt_.start > kStarterPatience;
    };
    until([&] { return (running_ && tree_.whole()) || in_starters(); }, end, "the job to start");
    if (!running_)
        throw Abandoned{fmt::format("{}; ask again when it has", start_.who_is_in_a_starter()),
                        ExitCode::refused};
}

// The generation's directory, and the word to every rank.
void Root::begin(double end) {
    attempt_.disturbed.clear();
    attempt_.generation = level_.begin();
    try {
        make_room(end);
    } catch (...) {
        level_.abandon(std::exchange(attempt_.generation, {}));  // no rank has heard of it
        throw;
    }
    attempt_.outcome.generation = Generation(attempt_.generation.number);
    clock_child_.clear();
    for (auto& [id, node] : tree_.nodes())
        if (node.ranks > 0) clock_child_.emplace(tree_.child_above(id), clock_child_.size());
    clock_ = std::make_unique<clock::Root>(clock_child_.size());
    question(wire::Begin{attempt_.epoch, attempt_.outcome.generation});
    clock_->begin(attempt_.epoch, static_cast<uint64_t>(tree::now_ms()) * 1000000);
    pump_clock();
}

void Root::freeze(double end) {
    question(wire::Freeze{attempt_.epoch});
    if (clock_->synchronous_sends()) {
        // A thread may stand only once its message is taken, and none may be taken before all have closed.
        until([&] { return tally_.answers().closed.ranks == start_.ranks(); }, end, "every rank to close");
        tree_.broadcast(wire::Take{attempt_.epoch});
    }
    until([&] { return tally_.answers().frozen.ranks == start_.ranks(); }, end, "every thread to stand");
}

// Rounds until what was sent was received, and nothing is open.
void Root::drain(double end) {
    const auto& heard = tally_.answers().drained;
    for (uint32_t round = 1;; ++round) {
        question(wire::Drain{attempt_.epoch, round});
        until([&] { return heard.ranks == start_.ranks(); }, end, "every rank to drain");
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

void Root::save(const Request& request, double end) {
    const auto& heard = tally_.answers();
    const auto all = start_.ranks();
    image::SaveOptions options = settings_.save_options;
    // Nobody goes on after the last one.
    if (request.stop) options.forked = false;
    const bool forked = options.forked;
    auto check = [&] {
        if (!heard.save_error.empty()) throw Abandoned{heard.save_error};
    };
    // What an image may refer to: a rank cannot know whether its last one was committed.
    const bool on_nodes = attempt_.level != store::LevelName::files;
    options.base = keeper_.on() ? keeper_.base_at(attempt_.level).number() : committed_;
    attempt_.parts = store::Parts(options.write.layout, daemon_of_ranks());
    attempt_.parts.create(attempt_.generation.folder);
    wire::Save order{attempt_.epoch, on_nodes ? "" : attempt_.generation.directory,
                     attempt_.outcome.generation, options.to_text()};
    if (on_nodes) order.medium = store::medium_of(attempt_.level);
    question(order);
    if (attempt_.parts.together()) {
        until([&] { return check(), heard.sized == all; }, end, "every rank to say its size");
        lay_out_parts();
    }
    if (forked) {
        // Writers hold the ranks' memory: the job goes on while they write.
        until([&] { return check(), heard.captured.ranks == all || heard.saved == all; }, end,
              "every rank to be captured");
        tree_.broadcast(wire::Resume{attempt_.epoch});
        attempt_.going_on = monotonic_s();
        enter("save");
    }
    until([&] { return check(), heard.saved == all; }, end, "every rank to write its image");
    if (!forked) {
        // The ranks suspend their threads and write in one go: the agents' clocks tell where one ends.
        leave_phase();
        auto& [name, seconds] = attempt_.outcome.phases.back();
        double both = seconds;
        seconds = std::min(both, static_cast<double>(heard.suspend_us) * 1e-6);
        attempt_.outcome.phases.emplace_back("save", both - seconds);
    }
}

// By rank, what its node daemon has for a number.
std::vector<uint32_t> Root::daemon_of_ranks() const {
    std::vector<uint32_t> daemons(start_.ranks());
    for (auto& [node, place] : start_.roster().places())
        place.ranks.each([&, id = static_cast<uint32_t>(node)](int32_t rank) {
            daemons.at(static_cast<size_t>(rank)) = id;
        });
    return daemons;
}

// The ranks stand and wait for it.
void Root::lay_out_parts() {
    std::vector<uint64_t> rooms(start_.ranks());
    tally_.each_size([&](int32_t rank, uint64_t bytes) { rooms.at(static_cast<size_t>(rank)) = bytes; });
    attempt_.parts.lay_out(rooms);
    attempt_.parts.finish(attempt_.generation.folder, settings_.job_number, attempt_.generation.number);
    for (auto& [node, place] : start_.roster().places()) {
        wire::Places places{attempt_.epoch, place.ranks.runs(), {}};
        place.ranks.each([&](int32_t rank) {
            places.begins.push_back(attempt_.parts.begin_of(Rank(static_cast<uint32_t>(rank))));
        });
        tree_.send(node, places);
    }
}

void Root::commit() {
    store::Manifest contents = manifest();  // with the times of all phases so far
    enter("commit");
    if (attempt_.level != store::LevelName::files)
        store_.commit_on_nodes(attempt_.generation, contents);
    else
        level_.commit(attempt_.generation, contents);
    committed_ = attempt_.generation.number;
    own_state_.whole_committed(attempt_.epoch);
    attempt_.generation.manifest = std::move(contents);
    attempt_.outcome.bytes = attempt_.generation.bytes();
    attempt_.saved = std::move(*attempt_.generation.manifest);
    attempt_.generation = {};
}

store::Manifest Root::manifest() const {
    store::Manifest m;
    m.job = settings_.job_number;
    m.job_name = settings_.job;
    m.generation = attempt_.generation.number;
    m.level = attempt_.level;
    if (m.on_nodes()) m.nodes = nodes_of_ranks();
    m.created = local_time_text(::time(nullptr));
    m.mpi = start_.mpi();
    m.command = settings_.command;
    m.starter = start_.waiting_starter();
    m.segments = settings_.segments;
    if (settings_.key) m.key_id = settings_.key->id();
    for (auto& [name, seconds] : attempt_.outcome.phases) m.phases[name] = seconds;
    m.images.reserve(start_.ranks());
    tally_.each_image([&](int32_t number, const wire::ImageRecord& image) {
        const Rank rank(static_cast<uint32_t>(number));
        m.images.push_back({rank, image::image_name(rank), image.bytes, image::Checksum{image.checksum}, 0});
    });
    std::sort(m.images.begin(), m.images.end(), [](auto& a, auto& b) { return a.rank < b.rank; });
    always(m.images.size() == start_.ranks(), "a manifest without every rank");
    for (size_t i = 0; i < m.images.size(); ++i)
        always(m.images[i].rank.index() == i, "a manifest with a rank twice");
    attempt_.parts.note_in(m);
    for (Generation needed : tally_.needs()) m.needs.push_back(needed.number());
    return m;
}

void Root::resume(bool stop) {
    // The ranks stay frozen until the launcher ends them (end_launcher).
    if (stop) return tree_.broadcast(wire::Leave{attempt_.epoch});
    // (Who went on with a forked writer may have said so already.)
    const auto& heard = tally_.answers().resumed;
    if (heard.ranks < start_.ranks()) question(wire::Resume{attempt_.epoch});
    until([&] { return heard.ranks >= start_.ranks(); }, monotonic_s() + settings_.limits.resume,
          "every rank to resume");
}

journal::Measured Root::what_was_measured(double ended) const {
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

// What became of it, and what it means for the next one.
void Root::conclude() {
    Outcome& now = attempt_.outcome;
    const double ended = monotonic_s();
    now.seconds = monotonic_s() - attempt_.start;
    now.measured = what_was_measured(ended);
    const bool memory = attempt_.level == store::LevelName::memory,
               on_nodes = attempt_.level != store::LevelName::files;
    if (!on_nodes) schedule_.measured(now.measured);  // the last one of a job goes to files
    if (memory)
        keeper_.planned().memory(now.measured.cost(), now.bytes);
    else if (!keeper_.why_no_room().empty())
        keeper_.planned().no_memory(now.measured.cost());
    if (settings_.keep > 0) level_.retain(settings_.keep);
    store_.remove_left_behind();
    keeper_.committed(std::exchange(attempt_.saved, {}), tree::now_ms());
    now.ok = true;
    ++checkpoints_;
    for (auto& [name, seconds] : now.phases)
        now.detail += fmt::format("{}{} {:.3f} s", now.detail.empty() ? "" : ", ", name, seconds);
    now.line =
        fmt::format("{} in {}: {} in {:.2f} s", now.generation.name(),
                    on_nodes ? keeper_.where() : settings_.ckpt_dir, human_size(now.bytes), now.seconds);
}

// ---- the means

void Root::question(const wire::Message& message) {
    tally_.ask(message);
    tree_.broadcast(message);
}

void Root::enter(const char* phase) {
    leave_phase();
    attempt_.phase = phase;
    attempt_.phase_start_us = now_us();
    spdlog::info("checkpoint {}: {}", attempt_.epoch, phase);
    if (attempt_.client >= 0) control_.say(attempt_.client, fmt::format("{{\"phase\":\"{}\"}}", phase));
}

void Root::leave_phase() {
    if (!attempt_.phase.empty()) {
        const double seconds = static_cast<double>(now_us() - attempt_.phase_start_us) * 1e-6;
        attempt_.outcome.phases.emplace_back(attempt_.phase, seconds);
        nlohmann::json fields = {{"phase", attempt_.phase},
                                 {"seconds", seconds},
                                 {"generation", attempt_.outcome.generation.name()},
                                 {"last", std::exchange(attempt_.last_heard, {})}};
        if (attempt_.slow == Attempt::Slow::asked) {
            attempt_.waits = inquiry_.text();
            if (status_clients_.empty()) inquiry_.end();
        }
        if (!attempt_.waits.empty()) fields["waits"] = std::exchange(attempt_.waits, {});
        attempt_.slow = Attempt::Slow::not_yet;
        note(journal::Kind::phase, std::move(fields));
    }
    attempt_.phase.clear();
}

// A phase that takes long: who waits where is for the journal, and asked once.
void Root::ask_who_holds_it_up() {
    if (attempt_.slow == Attempt::Slow::asked && query_done()) {
        attempt_.slow = Attempt::Slow::known;
        attempt_.waits = inquiry_.text();
        if (status_clients_.empty()) inquiry_.end();
    }
    if (attempt_.slow != Attempt::Slow::not_yet || inquiry_.going_on() || !settings_.journal) return;
    if (now_us() - attempt_.phase_start_us < kSlowPhaseUs) return;
    attempt_.slow = Attempt::Slow::asked;
    start_query();
}

// Serves everything else until `done`; gives the checkpoint up when it cannot succeed any more.
void Root::until(const std::function<bool()>& done, double end, const char* what) {
    for (;;) {
        const std::string& refusal = tally_.answers().refusal;
        if (!refusal.empty()) throw Abandoned{refusal, ExitCode::refused};
        if (fatal_) throw Abandoned{fatal_->line.substr(fatal_->line.starts_with("error: ") ? 7 : 0)};
        if (launcher_end_ || stopped_) throw Abandoned{"the job has ended"};
        if (losses_.any()) throw Abandoned{losses_.why()};
        if (!attempt_.generation.directory.empty() && !attempt_.disturbed.empty())
            throw Abandoned{attempt_.disturbed};
        if (attempt_.cancelled) throw Abandoned{"cancelled", ExitCode::refused};
        if (done()) return;
        watch_start();
        watch_losses();
        ask_who_holds_it_up();
        double left = end - monotonic_s();
        if (left <= 0) {
            std::string phase = attempt_.phase;
            attempt_.outcome.diagnosis = diagnose();
            throw Abandoned{
                fmt::format("timeout in phase {} while waiting for {}{}{}", phase, what,
                            running_ ? "" : " (" + start_.who_is_missing() + ")",
                            attempt_.outcome.diagnosis.empty() ? "" : ":\n" + attempt_.outcome.diagnosis),
                ExitCode::timeout};
        }
        // The clock's root wants to be polled every few milliseconds while the ranks converge.
        serve(static_cast<int>(std::clamp(left * 1000, 1.0, clock_ && !clock_->declared() ? 5.0 : 50.0)));
    }
}

// Who waits where, as far as the ranks answer.
std::string Root::diagnose() {
    std::string protocol;
    if (clock_ && !clock_->declared())
        for (auto& [node, child] : clock_child_)
            if (clock_->waiting_for(child) && tree_.nodes().count(node))
                protocol +=
                    fmt::format("ranks on {} have not reached the safe state\n", tree_.nodes().at(node).host);
    start_query();
    while (!query_done() && !launcher_end_) serve(50);
    inquiry_.end();
    std::string text = inquiry_.text() + protocol;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

// The ranks forget the checkpoint, the store forgets the generation, the job goes on.
void Root::take_back(const std::string& why) {
    leave_phase();
    Outcome& now = attempt_.outcome;
    now.ok = false;
    now.line = why;
    if (now.bytes > 0) now.line += fmt::format("; generation {} is complete", now.generation.name());
    if (!attempt_.generation.directory.empty()) {
        attempt_.phase = "resume";
        question(wire::Cancel{attempt_.epoch, why});
        // The dead do not resume: it is enough that all who are left do.
        auto left = [this] {
            return start_.roster().here() - static_cast<int>(tally_.answers().resumed.ranks);
        };
        auto some_stand = [&] { return (left() > 0 || !tree_.whole()) && !launcher_end_ && !fatal_; };
        double end = monotonic_s() + settings_.limits.resume;
        while (some_stand() && monotonic_s() < end) {
            if (losses_.any()) end = std::min(end, monotonic_s() + 2);
            serve(50);
        }
        if (some_stand())
            now.line += fmt::format("; {} of {} ranks have not gone on yet (fermata status --waits)", left(),
                                    start_.roster().here());
        level_.abandon(attempt_.generation);
        keeper_.clean_up();
        attempt_.phase.clear();
    }
    spdlog::warn("checkpoint {} is given up: {}", attempt_.epoch, why);
}

}  // namespace fermata::root
