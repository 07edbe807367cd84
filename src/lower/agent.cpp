#include "lower/agent.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/log.h"
#include "base/naps.h"
#include "image/shared.h"
#include "lower/binding/binding.h"
#include "lower/mpi_above.h"
#include "lower/rank_image.h"
#include "lower/services.h"
#include "lower/starter.h"
#include "split/fds/descriptors.h"
#include "split/loader/starters.h"
#include "split/memory/memory.h"
#include "split/process/state.h"
#include "split/threads/donors.h"
#include "split/threads/stop.h"

namespace fermata::lower {
namespace {

namespace threads = split::threads;

// While a checkpoint is pending the agent looks this often by itself: parked threads ring the bell for most
// events.
constexpr uint32_t kPendingTick = 300;           // us, the first one without news
constexpr long kMeetingTick = 20'000;            // ns; all threads stand
constexpr timespec kEarlyTick{0, 5'000'000};     // while a checkpoint waits for helpers to end
constexpr timespec kIdleTick{1, 0};              // only to notice threads that have ended
constexpr timespec kWritingTick{0, 50'000'000};  // while a child writes: memory may run short
// One attempt to stop all threads; between attempts the agent pulls messages, so that senders come out.
constexpr uint64_t kStopSlice = 2'000'000;  // ns

// Threads that read a mapped image when a checkpoint waits for it.
constexpr unsigned kHurry = 3;

sem_t ready;

}  // namespace

Agent::Agent(AgentTask task, std::unique_ptr<tree::AgentLink> link)
    : task_(std::move(task)), link_(std::move(link)), went_on_(!task_.config.generation) {}

Agent& Agent::start(AgentTask task, std::unique_ptr<tree::AgentLink> link) {
    auto* agent = new Agent(std::move(task), std::move(link));  // for the life of the process
    sem_init(&ready, 0, 0);
    pthread_t thread;
    int error = pthread_create(
        &thread, nullptr,
        [](void* self) -> void* {
            static_cast<Agent*>(self)->run();
            return nullptr;
        },
        agent);
    if (error) fail("cannot create the agent thread: {}", std::strerror(error));
    pthread_detach(thread);
    while (sem_wait(&ready) != 0) {
    }
    return *agent;
}

void Agent::run() {
    threads::enter_agent();
    use_processors_of(
        number_from({split::kLauncherProcess}, ::getppid()));  // the threads that write images get this, too
    sem_post(&ready);
    wire::Hello hello = link_->hello(task_.facts.rank, task_.facts.size, task_.facts.library.c_str(),
                                     task_.facts.version.c_str());
    hello.restarted_from = task_.config.generation;
    link_->send(hello);
    Naps naps(kPendingTick);
    for (;;) {
        pollfd fds[3] = {{threads::bell_fd(), POLLIN, 0},
                         {writing_ ? writing_->descriptor() : -1, POLLIN, 0},
                         {lost_ ? -1 : link_->fd(), POLLIN, 0}};
        bool others_work = waits_for_others();
        timespec wait{0, kMeetingTick};
        if (stage_ == Stage::idle && !others_work)
            wait = early_ ? kEarlyTick : writing_ ? kWritingTick : kIdleTick;
        else if (!meeting_)
            wait.tv_nsec = naps.next_ns();
        if (ppoll(fds, 3, &wait, nullptr) > 0 || others_work) naps.restart();
        if (others_work) binding_table().Progress();
        threads::answer_bell();
        threads::serve_donor_requests();
        if (stage_ == Stage::idle && (fds[0].revents | fds[1].revents | fds[2].revents) == 0)
            threads::collect_ended_threads();
        mailbox();
        if (task_.pager && task_.pager->finished()) task_.pager.reset();
        if (early_ && !cancelled_ && ready_for_checkpoint() && helpers_.reached(monotonic_ns())) begin_late();
        if (restart_ && __atomic_load_n(&restart_ready_, __ATOMIC_ACQUIRE) == 1) rebuild();
        while (auto message = link_->receive()) handle(*message);
        if (link_->closed() && !lost_) lose_daemon();
        if (meeting_ && meeting_->over()) met();
        if (writing_) watch_writer();
        tick();
    }
}

void Agent::lose_daemon() {
    lost_ = true;
    early_.reset();
    captured_.reset();
    writing_.reset();
    // What it did now would be done again after the restart.
    if (leaves_) ::_exit(128 + SIGTERM);
    if (!went_on_) {
        // Others may have been told to go on, and wait for this rank in vain.
        say(fmt::format("error: rank {}: lost the node daemon before every rank was back: restart again",
                        task_.facts.rank));
        ::_exit(static_cast<int>(ExitCode::failed));
    }
    if (meeting_) {
        cancelled_ = epoch_;
        return;
    }
    // Others may have been told to save and wait for this rank's word.
    if (stage_ == Stage::drain) {
        try {
            static_cast<void>(std::make_unique<Meeting>(the_bridge()->private_world, false).release());
        } catch (const Error&) {  // MPI is broken: so are they
        }
    }
    go_on_alone();
}

void Agent::go_on_alone() {
    resume(epoch_);
    // Nobody can answer any more: every rank goes into the real MPI_Finalize by itself.
    release_finalize();
    say(fmt::format("rank {}: lost the node daemon; the job goes on without further checkpoints",
                    task_.facts.rank));
}

// This rank has done its part in collective calls (rebuilding, files and windows before a save), others may
// be in theirs: a message that the library has taken from us may still need us to move (UCX while it
// connects). No thread of the application is in the library then.
bool Agent::waits_for_others() const {
    return stage_ == Stage::save || (restart_ && __atomic_load_n(&restart_ready_, __ATOMIC_ACQUIRE) == 2);
}

void Agent::mailbox() {
    if (auto line = take_warning())
        link_->send(wire::Warning{fmt::format("rank {}: {}", task_.facts.rank, *line)});
    if (auto fatal = take_fatal()) {
        if (lost_ || !link_->send(wire::Fatal{fatal->line, fatal->code})) {
            say("error: " + fatal->line);
            ::_exit(fatal->code);
        }
    }
    if (take_finalize_arrival()) link_->send(wire::ArrivedFinalize{});
}

void Agent::handle(const wire::Message& message) {
    spdlog::debug("rank {}: {}", task_.facts.rank, wire::name_of(message));
    if (auto* m = std::get_if<wire::Clock>(&message)) {
        // Only of a checkpoint that this rank takes part in: nobody would take back what another one begins
        // here.
        if (early_)
            early_clock_.push_back(*m);
        else if (stage_ != Stage::idle)
            clock_in(*m);
    } else if (auto* m = std::get_if<wire::Begin>(&message)) {
        begin(*m);
    } else if (auto* m = std::get_if<wire::Freeze>(&message)) {
        freeze(*m);
    } else if (auto* m = std::get_if<wire::Take>(&message)) {
        if (m->epoch == epoch_ && stage_ == Stage::freeze) the_upper()->take();
    } else if (auto* m = std::get_if<wire::Drain>(&message)) {
        drain(*m);
    } else if (auto* m = std::get_if<wire::Save>(&message)) {
        save(*m);
    } else if (auto* m = std::get_if<wire::Placed>(&message)) {
        write(m);
    } else if (auto* m = std::get_if<wire::Leave>(&message)) {
        leave(*m);
    } else if (auto* m = std::get_if<wire::Resume>(&message)) {
        resume(m->epoch);
    } else if (auto* m = std::get_if<wire::Cancel>(&message)) {
        early_.reset();
        captured_.reset();
        writing_.reset();  // ends the child that writes
        if (meeting_)
            cancelled_ = m->epoch;
        else
            resume(m->epoch);
    } else if (std::holds_alternative<wire::Query>(message)) {
        query();
    } else if (std::holds_alternative<wire::FinalizeReleased>(message)) {
        release_finalize();
    } else if (std::holds_alternative<wire::Go>(message)) {
        go();
    }
}

void Agent::tick() {
    if (stage_ == Stage::idle || !the_upper()) return;
    if (stage_ == Stage::converge) the_upper()->poll(monotonic_ns());
    clock_out();
    if (const char* why = the_upper()->give_up(); why && !gave_up_) {
        gave_up_ = true;
        link_->send(wire::Again{epoch_, why});
    }
    if (stage_ == Stage::freeze) try_freeze();
}

void Agent::clock_in(const wire::Clock& m) {
    if (const char* why = the_upper()->inbox(m.bytes.data(), m.bytes.size()))
        link_->send(wire::Refuse{epoch_, fmt::format("the protocol broke: {}", why)});
}

void Agent::clock_out() {
    // Larger than any clock message (src/clock/messages.h splits tables into parts).
    static char buffer[1 << 16];
    while (size_t size = the_upper()->outbox(buffer, sizeof buffer)) {
        auto* bytes = reinterpret_cast<const std::byte*>(buffer);
        link_->send(wire::Clock{{bytes, bytes + size}});
    }
}

void Agent::begin(const wire::Begin& m, bool helpers_waited) {
    char why[512] = "";
    if (cancelled_ || !ready_for_checkpoint() || (!helpers_waited && !helpers_.reached(monotonic_ns()))) {
        early_ = m;  // until the last one is over, the front is there, all memory, and helpers have ended
        early_clock_.clear();
        if (task_.pager) task_.pager->prefetch(kHurry);
    } else if (the_upper()->refuses(why, sizeof why)) {
        link_->send(wire::Refuse{m.epoch, why});
    } else if (std::string library = mpi_above(); !library.empty()) {
        link_->send(wire::Refuse{
            m.epoch,
            fmt::format("{} is in the program beside Fermata's MPI: what it knows cannot be saved; let "
                        "ld.so load it (dlopen), which gives Fermata's instead",
                        library)});
    } else {
        stage_ = Stage::converge;
        epoch_ = m.epoch;
        frozen_ = gave_up_ = false;
        try {
            split::sample_memory_flags();  // now, while the program still runs: it costs 0.1 s per GiB
        } catch (const Error&) {           // then it is done, and reported, when the image is written
        }
    }
}

bool Agent::ready_for_checkpoint() const { return the_upper() && !task_.pager; }

// The program has loaded its front, or its memory: now the checkpoint that waited for it begins here.
void Agent::begin_late() {
    wire::Begin m = *early_;
    early_.reset();
    begin(m, true);
    if (stage_ == Stage::idle) early_clock_.clear();  // refused
    for (const wire::Clock& clock : early_clock_) clock_in(clock);
    early_clock_.clear();
}

void Agent::freeze(const wire::Freeze& m) {
    if (stage_ != Stage::converge || m.epoch != epoch_) return;
    stage_ = Stage::freeze;
    the_upper()->freeze();
    link_->send(wire::Closed{epoch_});
    asked_to_stop_ = false;
    try_freeze();
}

void Agent::try_freeze() {
    // Helper commands that began while the ranks converged: the program runs on, up to its next MPI call.
    if (!frozen_ && !asked_to_stop_ && helpers_.reached(monotonic_ns())) {
        asked_to_stop_ = true;
        threads::ask_all_to_stop();
    }
    if (!frozen_ && asked_to_stop_) {
        threads::StopReport report = threads::stop_all(monotonic_ns() + kStopSlice);
        split::DrainReport drained{};
        the_upper()->drain(&drained);
        if (!report.stopped) {
            for (const auto& thread : report.missing)
                spdlog::debug("rank {}: thread {} {}", task_.facts.rank, thread.tid, thread.where);
            return;
        }
        frozen_ = true;
        link_->send(wire::Frozen{epoch_, drained.sent});
        return;
    }
    // Others may still be inside a send to this rank: pulling lets them out.
    split::DrainReport ignored{};
    the_upper()->drain(&ignored);
}

void Agent::drain(const wire::Drain& m) {
    if (m.epoch != epoch_ || !frozen_) return;
    stage_ = Stage::drain;
    split::DrainReport report{};
    the_upper()->drain(&report);
    link_->send(wire::Drained{m.epoch, m.round, report.sent, report.received, report.open});
}

void Agent::save(const wire::Save& m) {
    if (m.epoch != epoch_ || !frozen_) return;
    stage_ = Stage::save;
    captured_.reset();
    writing_.reset();
    saved_ = {};
    saved_.epoch = m.epoch;
    saved_.rank = task_.facts.rank;
    save_began_ = monotonic_ns();
    forks_ = false;
    try {
        how_ = image::SaveOptions::from_text(m.options);
        forks_ = how_.forked;
        saved_.file = how_.write.shared ? image::kSharedName
                                        : image::image_name(static_cast<uint32_t>(task_.facts.rank));
        meeting_ = std::make_unique<Meeting>(the_bridge()->private_world, true);
        save_ = m;
    } catch (const std::exception& error) {
        saved_.error = fmt::format("rank {}: {}", saved_.rank, error.what());
        finish_save();
    }
}

// All ranks know by now whether all of them take part, and do the same.
void Agent::met() {
    bool everybody = meeting_->everybody();
    meeting_.reset();
    if (everybody && !cancelled_) return capture();
    // Some are in it and need this rank, whatever it has heard meanwhile.
    if (everybody) {
        try {
            prepare_save();
        } catch (const std::exception&) {  // nothing is saved
        }
        forget_roster();
    }
    save_.reset();
    // Else it will: who says no has lost its daemon, and the root with it.
    if (!cancelled_) return;
    uint32_t epoch = *cancelled_;
    cancelled_.reset();
    if (lost_)
        go_on_alone();
    else
        resume(epoch);
}

// What ranks do together before each saves. An error class of files and windows.
int Agent::prepare_save() {
    int code = the_upper()->before_save();
    roster_ = exchange_uses(the_bridge()->private_world, task_.facts.rank, task_.facts.size);
    split::shared::set_roster(roster_.get());
    return code;
}

void Agent::forget_roster() {
    split::shared::set_roster(nullptr);
    roster_.reset();
}

void Agent::capture() {
    wire::Save m = std::move(*save_);
    save_.reset();
    try {
        image::Identity identity{task_.job, m.generation.number(), static_cast<uint32_t>(task_.facts.rank),
                                 static_cast<uint32_t>(task_.facts.size)};
        if (int code = prepare_save())
            fail("files or windows cannot be saved at this moment (MPI error class {}, e.g. an open epoch)",
                 code);
        captured_ =
            capture_image(m.directory, identity, task_.program, how_, task_.key, task_.config.files, newest_);
        forget_roster();
    } catch (const std::exception& error) {
        forget_roster();
        saved_.error = fmt::format("rank {}: {}", task_.facts.rank, error.what());
        return finish_save();
    }
    if (captured_->image->shared())
        link_->send(wire::Sized{m.epoch, task_.facts.rank, captured_->image->writer().room()});
    else
        write(nullptr);
}

void Agent::write(const wire::Placed* where) {
    if (!captured_ || (where && where->epoch != epoch_)) return;
    CapturedImage captured = std::move(*captured_);
    captured_.reset();
    saved_.suspend_us = (monotonic_ns() - save_began_) / 1000;
    try {
        if (where) captured.image->writer().place(where->begin);
        write_image(captured);
        writing_ = std::move(captured.image);
        covered_ = std::move(captured.covered);
        for (const std::string& line : captured.warnings)
            link_->send(wire::Warning{fmt::format("rank {}: {}", task_.facts.rank, line), epoch_});
    } catch (const std::exception& error) {
        saved_.error = fmt::format("rank {}: {}", task_.facts.rank, error.what());
    }
    // Also when this rank could not fork: the others must not wait for its word.
    if (forks_ && saved_.error.empty()) link_->send(wire::Captured{saved_.epoch});
    if (!writing_ || writing_->descriptor() < 0) finish_save();
}

void Agent::finish_save() {
    try {
        if (writing_ && saved_.error.empty()) {
            image::Summary summary = writing_->conclude();
            saved_.bytes = summary.bytes;
            saved_.checksum = summary.checksum.hex();
            image::Content content = writing_->writer().content();
            uint32_t own = content.sources.back().generation;
            for (const image::Source& source : content.sources)
                if (source.generation != own) saved_.needs.push_back(Generation(source.generation));
            if (!covered_.empty()) {
                newest_.generation = own;
                newest_.content = std::move(content);
                newest_.covered = std::move(covered_);
            }
        }
    } catch (const std::exception& error) {
        saved_.error = fmt::format("rank {}: {}", task_.facts.rank, error.what());
    }
    writing_.reset();
    link_->send(saved_);
}

void Agent::watch_writer() {
    try {
        if (!writing_->done()) return writing_->watch_memory();
    } catch (const std::exception& error) {
        saved_.error = fmt::format("rank {}: {}", task_.facts.rank, error.what());
    }
    finish_save();
}

void Agent::resume(uint32_t epoch) {
    if (stage_ != Stage::idle) {
        the_upper()->resume(0);
        threads::resume_all();
        stage_ = Stage::idle;
        frozen_ = false;
    }
    if (writing_) writing_->child().let_go();
    if (!lost_) link_->send(wire::Resumed{epoch});
}

// The program stands and blocks everything; nothing else of it is to run, its own handler least of all. Not
// by the signal's default action: of a rank that dies of a signal Hydra says that the program ended badly.
void Agent::leave(const wire::Leave& m) {
    if (m.epoch != epoch_ || stage_ != Stage::save) return;
    leaves_ = true;
    tell_starter_of_end();
    struct sigaction end {};
    end.sa_handler = [](int) { ::_exit(128 + SIGTERM); };
    ::sigaction(SIGTERM, &end, nullptr);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
}

void Agent::query() {
    static char text[16384];
    wire::Diagnosis answer;
    if (the_upper()) {
        size_t size = the_upper()->diagnosis(text, sizeof text);
        answer.text.assign(text, size);
        if (meeting_) answer.text += "stands until every rank has been told to save\n";
    } else {
        answer.text = "the program is being loaded";
    }
    link_->send(answer);
}

void Agent::finish_restart(RestartTask task) {
    restart_ = std::make_unique<RestartTask>(std::move(task));
    __atomic_store_n(&restart_ready_, 1, __ATOMIC_RELEASE);
    threads::poke_agent();
}

void Agent::rebuild() {
    restart_ready_ = 2;
    std::string error = restart_->error;
    if (error.empty()) {
        char line[1024] = "";
        if (the_upper()->rebuild(line, sizeof line) != 0)
            error = line[0] ? line : "cannot rebuild the MPI objects";
    }
    if (!error.empty()) error = fmt::format("rank {}: {}", task_.facts.rank, error);
    link_->send(wire::Restored{error.empty(), error});
}

void Agent::go() {
    if (!restart_ || restart_ready_ != 2) return;
    went_on_ = true;
    the_upper()->resume(1);
    split::process::Restored timers = split::process::restore_timers(restart_->process_state);
    for (const std::string& line : timers.warnings)
        link_->send(wire::Warning{fmt::format("rank {}: {}", task_.facts.rank, line)});
    if (!timers.error.empty())
        link_->send(wire::Warning{fmt::format("rank {}: {}", task_.facts.rank, timers.error)});
    restart_.reset();
    threads::resume_all();
    if (task_.pager) task_.pager->prefetch(1);
}

}  // namespace fermata::lower
