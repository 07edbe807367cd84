// A checkpoint, as the root leads it: the list of its phases, and what it waits for in each.
#include <time.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "root/root.h"

namespace fermata::root {
namespace {

int64_t now_us() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1000000 + now.tv_nsec / 1000;
}

constexpr double kStarterPatience = 3;  // seconds

double now_s() { return static_cast<double>(now_us()) * 1e-6; }

}  // namespace

Outcome Root::checkpoint(const Request& request) {
    double start = now_s();
    double end = start + (request.timeout > 0 ? request.timeout : settings_.limits.checkpoint);
    ++epoch_;
    in_checkpoint_ = true;
    cancel_ = false;
    client_ = request.client;
    now_ = {};
    heard_ = {};
    generation_ = {};
    try {
        enter("request");
        if (finalize_released_)
            throw Abandoned{"the job is in MPI_Finalize: it ends by itself", ExitCode::refused};
        auto in_starters = [&] {
            // A person who asks shall not wait for the whole time: the script may prepare for hours.
            return request.client >= 0 && !starters_.empty() && now_s() - start > kStarterPatience;
        };
        until([&] { return running_ || in_starters(); }, end, "the job to start");
        if (!running_)
            throw Abandoned{fmt::format("{}; ask again when it has", who_is_in_a_starter()),
                            ExitCode::refused};
        auto all = static_cast<uint32_t>(roster_.size());
        generation_ = store_.begin();
        try {
            store_.check_space(last_bytes_ + last_bytes_ / 10);
        } catch (const Error&) {
            store_.abandon(std::exchange(generation_, {}));  // no rank has heard of it
            throw;
        }
        now_.generation = store::generation_name(generation_.number);
        clock_child_.clear();
        for (auto& [id, node] : tree_.nodes())
            if (node.ranks > 0) clock_child_.emplace(id, clock_child_.size());
        clock_ = std::make_unique<clock::Root>(clock_child_.size());
        tree_.broadcast(wire::Begin{epoch_, now_.generation});
        clock_->begin(epoch_, static_cast<uint64_t>(tree::now_ms()) * 1000000);
        pump_clock();

        enter("targets");
        until([&] { return clock_->phase() != clock::Root::Phase::request; }, end,
              "every rank to report its collectives");

        enter("converge");
        until([&] { return clock_->declared(); }, end, "the ranks to reach a safe state");
        double standing = now_s();

        enter("freeze");
        tree_.broadcast(wire::Freeze{epoch_});
        if (clock_->synchronous_sends()) {
            // A thread may stand only once its message is taken, and none may be taken before all have
            // closed.
            until([&] { return heard_.closed == all; }, end, "every rank to close");
            tree_.broadcast(wire::Take{epoch_});
        }
        until([&] { return heard_.frozen == all; }, end, "every thread to stand");

        enter("drain");
        drain(end);

        enter("suspend");
        double going_on = save(request, request.timeout > 0 ? end : now_s() + settings_.limits.save);

        leave_phase();
        store::Manifest contents = manifest();  // with the times of all phases so far
        enter("commit");
        store_.commit(generation_, contents);
        committed_ = generation_.number;
        generation_.manifest = std::move(contents);
        now_.bytes = generation_.bytes();
        generation_ = {};

        enter("resume");
        if (request.stop) {
            // The ranks stay frozen until mpiexec ends them (end_mpiexec).
            tree_.broadcast(wire::Leave{epoch_});
        } else {
            if (heard_.resumed < all) tree_.broadcast(wire::Resume{epoch_});
            until([&] { return heard_.resumed >= all; }, now_s() + settings_.limits.resume,
                  "every rank to resume");
        }
        leave_phase();
        last_cost_ = (going_on > 0 ? going_on : now_s()) - standing;
        if (settings_.keep > 0) store_.retain(settings_.keep);
        now_.ok = true;
        now_.seconds = now_s() - start;
        ++checkpoints_;
        for (auto& [name, seconds] : now_.phases)
            now_.detail += fmt::format("{}{} {:.3f} s", now_.detail.empty() ? "" : ", ", name, seconds);
        now_.line = fmt::format("{} in {}: {} in {:.2f} s", now_.generation, settings_.ckpt_dir,
                                human_size(now_.bytes), now_.seconds);
    } catch (const Abandoned& reason) {
        now_.code = reason.code;
        take_back(reason.why);
    } catch (const Error& error) {  // the store: no space, not writable, …
        now_.code = error.code();
        take_back(error.what());
    } catch (const std::exception& error) {
        take_back(line_of(error));
    }
    now_.warnings = heard_.warnings.lines();
    in_checkpoint_ = false;
    clock_.reset();
    phase_ = "";
    return std::move(now_);
}

// Rounds until what was sent was received, and nothing is open.
void Root::drain(double end) {
    auto all = static_cast<uint32_t>(roster_.size());
    for (uint32_t round = 1;; ++round) {
        heard_.round = round;
        heard_.drained = 0;
        heard_.sent = heard_.received = heard_.open = 0;
        tree_.broadcast(wire::Drain{epoch_, round});
        until([&] { return heard_.drained == all; }, end, "every rank to drain");
        if (heard_.sent == heard_.received && heard_.open == 0) return;
        if (round % 1000 == 0)
            spdlog::warn("drain: {} sent, {} received, {} open", heard_.sent, heard_.received, heard_.open);
        // Messages on their way need a moment: 1 ms, then longer.
        double pause = now_s() + std::min(0.001 * round, 0.05);
        std::string what = fmt::format(
            "messages and collectives on their way to end ({} messages sent, {} received, {} operations "
            "open)",
            heard_.sent, heard_.received, heard_.open);
        until([&] { return now_s() >= pause; }, end, what.c_str());
    }
}

// When the job went on before all was written (with forked writers), else 0.
double Root::save(const Request& request, double end) {
    auto all = static_cast<uint32_t>(roster_.size());
    image::SaveOptions options = settings_.save_options;
    double going_on = 0;
    // Nobody goes on after the last one.
    if (request.stop) options.forked = false;
    const bool forked = options.forked;
    auto check = [&] {
        if (!heard_.save_error.empty()) throw Abandoned{heard_.save_error};
    };
    // What an image may refer to: a rank cannot know whether its last one was committed.
    options.base = committed_;
    std::optional<image::SharedFile> shared;
    if (options.write.shared) shared.emplace(generation_.folder);
    tree_.broadcast(wire::Save{epoch_, generation_.directory, now_.generation, options.to_text()});
    if (shared) {
        until([&] { return check(), heard_.sized.size() == all; }, end, "every rank to say its size");
        lay_out_shared_file(*shared);
    }
    if (forked) {
        // Writers hold the ranks' memory: the job goes on while they write.
        until([&] { return check(), heard_.captured == all || heard_.saved.size() == all; }, end,
              "every rank to be captured");
        tree_.broadcast(wire::Resume{epoch_});
        going_on = now_s();
        enter("save");
    }
    until([&] { return check(), heard_.saved.size() == all; }, end, "every rank to write its image");
    std::sort(heard_.saved.begin(), heard_.saved.end(),
              [](const wire::Saved& a, const wire::Saved& b) { return a.rank < b.rank; });
    if (!forked) {
        // The ranks suspend their threads and write in one go: the agents' clocks tell where one ends.
        leave_phase();
        auto& [name, seconds] = now_.phases.back();
        double both = seconds;
        seconds = std::min(both, static_cast<double>(heard_.suspend_us) * 1e-6);
        now_.phases.emplace_back("save", both - seconds);
    }
    return going_on;
}

// The ranks stand and wait for it.
void Root::lay_out_shared_file(image::SharedFile& file) {
    std::sort(heard_.sized.begin(), heard_.sized.end(),
              [](const wire::Sized& a, const wire::Sized& b) { return a.rank < b.rank; });
    std::vector<uint64_t> lengths;
    for (const wire::Sized& part : heard_.sized) lengths.push_back(part.bytes);
    heard_.begins = image::SharedFile::lay_out(lengths);
    heard_.shared_bytes = heard_.begins.back() + lengths.back();
    file.finish(settings_.job_number, generation_.number, heard_.begins, heard_.shared_bytes);
    wire::PlacedList places;
    for (size_t rank = 0; rank < lengths.size(); ++rank)
        places.parts.push_back({epoch_, static_cast<int32_t>(rank), heard_.begins[rank]});
    tree_.broadcast(places);
}

store::Manifest Root::manifest() const {
    store::Manifest m;
    m.job = settings_.job_number;
    m.job_name = settings_.job;
    m.generation = generation_.number;
    m.created = local_time_text(::time(nullptr));
    m.mpi = mpi_;
    m.command = settings_.command;
    m.starter = waiting_starter_;
    m.segments = settings_.segments;
    if (settings_.key) m.key_id = settings_.key->id();
    m.shared_bytes = heard_.shared_bytes;
    for (const wire::Saved& image : heard_.saved) {
        auto rank = static_cast<uint32_t>(image.rank);
        uint64_t offset = m.shared_bytes ? heard_.begins.at(rank) : 0;
        m.images.push_back({rank, image.file, image.bytes, image.checksum, offset});
    }
    for (auto& [name, seconds] : now_.phases) m.phases[name] = seconds;
    std::set<uint32_t> needs;
    for (const wire::Saved& image : heard_.saved) {
        std::istringstream words(image.needs);
        for (uint32_t number; words >> number;) needs.insert(number);
    }
    m.needs.assign(needs.begin(), needs.end());
    return m;
}

// ---- the means

void Root::enter(const char* phase) {
    leave_phase();
    phase_ = phase;
    phase_start_us_ = now_us();
    spdlog::info("checkpoint {}: {}", epoch_, phase);
    if (client_ >= 0) control_.say(client_, fmt::format("{{\"phase\":\"{}\"}}", phase));
}

void Root::leave_phase() {
    if (!phase_.empty())
        now_.phases.emplace_back(phase_, static_cast<double>(now_us() - phase_start_us_) * 1e-6);
    phase_.clear();
}

// Serves everything else until `done`; gives the checkpoint up when it cannot succeed any more.
template <class Done>
void Root::until(Done done, double end, const char* what) {
    for (;;) {
        if (!heard_.refusal.empty()) throw Abandoned{heard_.refusal, ExitCode::refused};
        if (fatal_) throw Abandoned{fatal_->line};
        if (mpiexec_status_ || stopped_) throw Abandoned{"the job has ended"};
        if (!somebody_gone_.empty()) throw Abandoned{somebody_gone_};
        if (cancel_) throw Abandoned{"cancelled", ExitCode::refused};
        if (done()) return;
        watch_start();
        double left = end - now_s();
        if (left <= 0) {
            std::string phase = phase_;
            now_.diagnosis = diagnose();
            throw Abandoned{fmt::format("timeout in phase {} while waiting for {}{}{}", phase, what,
                                        running_ ? "" : " (" + who_is_missing() + ")",
                                        now_.diagnosis.empty() ? "" : ":\n" + now_.diagnosis),
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
                    fmt::format("ranks on {} have not reached the safe state\n", tree_.nodes()[node].host);
    start_query();
    while (!query_done() && !mpiexec_status_) serve(50);
    query_end_ = 0;
    std::string text = diagnosis_ + protocol;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

// The ranks forget the checkpoint, the store forgets the generation, the job goes on.
void Root::take_back(const std::string& why) {
    leave_phase();
    now_.ok = false;
    now_.line = why;
    if (now_.bytes > 0) now_.line += fmt::format("; generation {} is complete", now_.generation);
    if (!generation_.directory.empty()) {
        heard_.resumed = 0;
        phase_ = "resume";
        tree_.broadcast(wire::Cancel{epoch_, why});
        // The dead do not resume: it is enough that all who are left do.
        auto left = [this] { return roster_.here() - static_cast<int>(heard_.resumed); };
        auto some_stand = [&] { return left() > 0 && !mpiexec_status_ && !fatal_; };
        double end = now_s() + settings_.limits.resume;
        while (some_stand() && now_s() < end) {
            if (!somebody_gone_.empty()) end = std::min(end, now_s() + 2);
            serve(50);
        }
        if (some_stand())
            now_.line += fmt::format("; {} of {} ranks have not gone on yet (fermata status --waits)", left(),
                                     roster_.here());
        store_.abandon(generation_);
        phase_.clear();
    }
    spdlog::warn("checkpoint {} is given up: {}", epoch_, why);
}

}  // namespace fermata::root
