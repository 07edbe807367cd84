#include "lower/agent.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <utility>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/environment.h"
#include "base/error.h"
#include "base/invariant.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "lower/agent_events.h"
#include "lower/binding/binding.h"
#include "lower/end_quietly.h"
#include "lower/mpi_above.h"
#include "lower/services.h"
#include "lower/starter.h"
#include "lower/stay.h"
#include "split/loader/starters.h"
#include "split/memory/memory.h"
#include "split/process/child.h"
#include "split/process/warden.h"
#include "split/threads/donors.h"
#include "split/threads/stop.h"

namespace fermata::lower {
namespace {

namespace threads = split::threads;

// Pace::busy: so long at first, longer without news.
constexpr uint32_t kBusyTick = 300;  // us
// Threads that read a mapped image when a checkpoint waits for it.
constexpr unsigned kHurry = 3;

timespec time_of(Pace pace, Naps& naps) {
    switch (pace) {
        case Pace::rest:
            return {1, 0};
        case Pace::helpers:
            return {0, 5'000'000};
        case Pace::behind:
            return {0, 50'000'000};
        case Pace::alone:
            return {0, 20'000'000};
        case Pace::busy:
            break;
    }
    return {0, static_cast<long>(naps.next_ns())};
}

sem_t ready;

}  // namespace

Agent::Agent(AgentTask task, std::unique_ptr<tree::AgentLink> link)
    : task_(std::move(task)),
      link_(std::move(link)),
      stage_(task_.config.generation || task_.second ? Stage::restoring : Stage::running) {
    if (task_.second) orders_ = {task_.second->epoch, task_.second->orders};
}

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

void Agent::note_phase(wire::RestartPhase phase) {
    progress_.enter(phase);
    threads::poke_agent();
}

void Agent::finish_restart(RestoredParts parts) {
    restored_.give(std::move(parts));
    threads::poke_agent();
}

// ---- what comes

void Agent::run() {
    threads::enter_agent();
    use_processors_of(
        number_from({split::kLauncherProcess}, ::getppid()));  // the threads that write images get this, too
    sem_post(&ready);
    // A copy says who it is once it could follow.
    if (!task_.config.copy_of) say_hello();
    Naps naps(kBusyTick);
    for (;;) {
        wait(naps);
        mailbox();
        if (task_.pager && task_.pager->finished()) task_.pager.reset();
        while (auto message = link_->receive()) handle(*message);
        if (link_->closed() && !alone()) on(Event::daemon_lost);
        look();
        converge_and_freeze();
    }
}

void Agent::say_hello() {
    wire::Hello hello = link_->hello(wire_rank(), static_cast<int>(task_.facts.size),
                                     task_.facts.library.c_str(), task_.facts.version.c_str());
    hello.restarted_from = task_.config.generation;
    link_->send(hello);
}

// Until something comes, or it is time to look.
void Agent::wait(Naps& naps) {
    const StageFacts& facts = facts_of(stage_);
    bool child_works = checkpoint_ && checkpoint_->work;
    pollfd fds[3] = {{threads::bell_fd(), POLLIN, 0},
                     {child_works ? checkpoint_->work->descriptor() : -1, POLLIN, 0},
                     {alone() ? -1 : link_->fd(), POLLIN, 0}};
    timespec time = time_of(facts.pace, naps);
    // The old library of ranks that stand anywhere is not touched again: it may wait for whom is no more.
    const bool moves_library = facts.moves_library && !(checkpoint_ && checkpoint_->anywhere);
    if (ppoll(fds, 3, &time, nullptr) > 0 || moves_library) naps.restart();
    if (moves_library) binding_table().Progress();
    threads::answer_bell();
    threads::serve_donor_requests();
    if (facts.at_rest && (fds[0].revents | fds[1].revents | fds[2].revents) == 0)
        threads::collect_ended_threads();
}

void Agent::end_job(const std::string& line, int code) {
    if (!alone() && link_->send(wire::Fatal{line, code})) return;
    say("error: " + line);
    ::_exit(code);
}

void Agent::mailbox() {
    if (auto line = take_warning()) warn(*line);
    if (auto wanted = wanted_file()) answer_file(copys_file(*link_, *wanted));
    if (auto fatal = take_fatal()) end_job(fatal->line, fatal->code);
    if (take_finalize_arrival()) link_->send(wire::ArrivedFinalize{});
    if (auto code = leaving_with()) {
        if (!alone()) link_->send(wire::Leaving{*code});
        said_that_it_leaves();
    }
    for (int signal : split::process::held_signals()) link_->send(wire::Warned{signal});
    if (auto news = own_words_.news(the_upper() ? the_upper()->own_state : nullptr)) link_->send(*news);
    say_phase();
    say_log_size();
    ask_who_lives();
}

void Agent::handle(const wire::Message& message) {
    spdlog::debug("rank {}: {}", rank().number(), wire::name_of(message));
    if (auto* m = std::get_if<wire::Resume>(&message)) ended_epoch_ = m->epoch;
    if (auto* m = std::get_if<wire::Cancel>(&message)) ended_epoch_ = m->epoch;
    if (auto epoch = epoch_of(message);
        epoch && stage_ != Stage::telling && (!checkpoint_ || checkpoint_->epoch != *epoch))
        return;
    if (std::holds_alternative<wire::Query>(message))
        query();
    else if (std::holds_alternative<wire::Depart>(message))
        depart();
    else if (std::holds_alternative<wire::FinalizeReleased>(message))
        release_finalize();
    else if (std::holds_alternative<wire::CopyGone>(message))
        the_upper()->log_copy_gone();
    else if (auto* living = std::get_if<wire::Living>(&message))
        hear_who_lives(*living);
    else if (auto* wish = std::get_if<wire::AskProgram>(&message))
        OwnWords::ask(the_upper() ? the_upper()->own_state : nullptr, *wish);
    else if (auto* waiting = std::get_if<wire::Waiting>(&message); waiting && task_.second)
        task_.second->signals = waiting->signals;
    else if (auto event = event_of(message))
        on(*event, &message);
}

// Enters the stage of the event's row, then does the row's action; what that finds out is the next event.
void Agent::on(Event event, const wire::Message* message) {
    for (std::optional<Event> next = event; next;) {
        std::optional<Step> row = step(stage_, *next);
        if (!row) {
            spdlog::error("rank {}: {} while {}: {}", rank().number(), word_of(*next), facts_of(stage_).word,
                          why_never(stage_, *next));
            return;
        }
        stage_ = row->next;
        always(!facts_of(stage_).in_checkpoint || checkpoint_ || row->action == Action::begin ||
                   row->action == Action::begin_at_once,
               "a stage of a checkpoint that is not there");
        if (checkpoint_) checkpoint_->times.enter(stage_, monotonic_ns());
        next = act(row->action, message);
    }
}

// Finds out what has happened by itself.
void Agent::look() {
    switch (stage_) {
        case Stage::restoring:
            if ((parts_ = restored_.take()))
                on(task_.config.message_log && !task_.second && !task_.config.copy_of ? Event::logs_first
                                                                                      : Event::restored);
            break;
        case Stage::asked:
            if (auto event = consider()) on(*event);
            break;
        case Stage::meeting:
        case Stage::given_up:
        case Stage::given_up_asked:
        case Stage::meeting_alone:
            if (checkpoint_->work->over()) on(checkpoint_->work->everybody() ? Event::met : Event::away);
            break;
        case Stage::writing:
        case Stage::behind:
            if (checkpoint_->work->child_done()) on(Event::ended);
            break;
        default:
            break;
    }
}

void Agent::query() {
    static char text[16384];
    wire::Diagnosis answer;
    if (the_upper()) {
        // Threads that do not stop come first: the others stand because of them.
        if (stage_ == Stage::stopping)
            for (const auto& thread : checkpoint_->not_stopped) answer.text += thread.where + "\n";
        answer.text.append(text, the_upper()->diagnosis(text, sizeof text));
        if (is_meeting(stage_)) answer.text += "stands until every rank has been told to save\n";
    } else {
        answer.text = "the program is being loaded";
    }
    link_->send(answer);
}

// ---- what is done about it

std::optional<Event> Agent::act(Action action, const wire::Message* message) {
    switch (action) {
        case Action::nothing:
            break;
        case Action::await_logs:
            await_logs();
            break;
        case Action::rebuild:
            if (message) orders_ = LogsHeard{std::get<wire::LogOrder>(*message)};
            rebuild();
            break;
        case Action::go:
            go();
            break;
        case Action::end_with_launcher:
            tell_starter_of_end();
            end_with_launcher();
        case Action::end_before_go:
            end_before_go();
        case Action::note_begin:
            asked_ = Asked{std::get<wire::Begin>(*message), {}, {}, monotonic_ns()};
            if (task_.pager) task_.pager->prefetch(kHurry);
            return stage_ == Stage::asked ? consider() : std::nullopt;
        case Action::keep_clock:
            asked_->clock.push_back(std::get<wire::Clock>(*message));
            break;
        case Action::refuse:
            link_->send(wire::Refuse{asked_->begin.epoch, asked_->refusal});
            asked_.reset();
            break;
        case Action::begin:
            begin();
            break;
        case Action::begin_at_once:
            begin();
            the_upper()->freeze();
            break;
        case Action::forget_begin:
            asked_.reset();
            break;
        case Action::forget_begin_and_answer:
            asked_.reset();
            answer();
            break;
        case Action::hear_clock:
            hear_clock(std::get<wire::Clock>(*message));
            break;
        case Action::close:
            the_upper()->freeze();
            link_->send(wire::Closed{checkpoint_->epoch});
            break;
        case Action::take:
            the_upper()->take();
            break;
        case Action::ask_to_stop:
            kill_point("stop.asked");
            threads::ask_all_to_stop();
            break;
        case Action::say_frozen:
            say_frozen();
            break;
        case Action::say_log:
            say_log(std::get<wire::AskLog>(*message));
            break;
        case Action::keep_orders:
            kill_point("hop.orders");
            checkpoint_->orders = std::get<wire::LogOrder>(*message).bytes;
            break;
        case Action::drain:
            drain(std::get<wire::Drain>(*message));
            break;
        default:
            return act_on_image(action, message);
    }
    return {};
}

// From Save on.
std::optional<Event> Agent::act_on_image(Action action, const wire::Message* message) {
    switch (action) {
        case Action::meet:
            OwnWords::captured(the_upper() ? the_upper()->own_state : nullptr, checkpoint_->epoch);
            meet(*message);
            if (checkpoint_->work->failed()) return Event::ended;
            break;
        case Action::hop:
            OwnWords::captured(the_upper() ? the_upper()->own_state : nullptr, checkpoint_->epoch);
            meet(*message);
            return hop();
        case Action::save_alone:
            if (std::get<wire::Save>(*message).copies.empty())
                OwnWords::captured(the_upper() ? the_upper()->own_state : nullptr, checkpoint_->epoch);
            meet(*message);
            return checkpoint_->work->failed() ? std::optional(Event::ended) : capture();
        case Action::capture:
            return checkpoint_->hop ? hop() : capture();
        case Action::say_size:
            always(checkpoint_->saving, "the size of an image that is not captured");
            link_->send(wire::Sized{checkpoint_->epoch, wire_rank(), checkpoint_->saving->room()});
            break;
        case Action::write:
            return write(std::get<wire::Placed>(*message).begin);
        case Action::conclude:
            always(checkpoint_ && checkpoint_->work, "the end of a checkpoint that has done nothing");
            conclude();
            if (stage_ == Stage::running) checkpoint_.reset();
            break;
        case Action::leave:
            leave();
            break;
        case Action::end_left:
            ::_exit(128 + SIGTERM);
        default:
            if (checkpoint_ && checkpoint_->hop && message && std::holds_alternative<wire::Resume>(*message))
                leave_to_child();
            go_on(action);
            break;
    }
    return {};
}

// The child has the rank from now on; this process ends here, or follows it.
void Agent::leave_to_child() {
    Hop& hop = *checkpoint_->hop;
    kill_point("hop.resumed");
    if (!hop.stays()) hop.let_go(*link_);
    kill_point("copy.before_it_stays");
    link_ = hop.let_go_and_stay(*link_);
    kill_point("copy.stays");
    the_upper()->log_be_copy();
    threads::bring_all_back();  // the world of its library is no more
    kill_point("copy.brought_back");
}

void Agent::meet(const wire::Message& order) {
    always(checkpoint_ && !checkpoint_->work, "a rank that is told to save twice");
    if (auto* renew = std::get_if<wire::Renew>(&order)) {
        auto hop = std::make_unique<Hop>(task_.who, task_.facts, task_.config, *renew,
                                         std::exchange(checkpoint_->orders, {}));
        checkpoint_->hop = hop.get();
        checkpoint_->work = std::move(hop);
    } else {
        auto saving = std::make_unique<Saving>(task_.who, std::get<wire::Save>(order), last_image_,
                                               checkpoint_->anywhere);
        checkpoint_->saving = saving.get();
        checkpoint_->work = std::move(saving);
    }
}

// Out of a checkpoint.
void Agent::go_on(Action action) {
    switch (action) {
        case Action::go_on_writing:
            run_program();
            always(checkpoint_->saving, "a child that writes no image");
            checkpoint_->saving->let_child_go();
            return answer();
        case Action::help_and_go_on:
            checkpoint_->work->help();
            [[fallthrough]];
        case Action::go_on:
            checkpoint_.reset();
            run_program();
            return answer();
        case Action::drop_image:
            checkpoint_.reset();
            return answer();
        case Action::stay_away_and_go_on_alone:
            stay_away();
            break;
        case Action::help_and_go_on_alone:
            checkpoint_->work->help();
            break;
        case Action::answer:
            return answer();
        default:  // go_on_alone, stay_alone
            break;
    }
    if (is_copy()) ::_exit(0);  // nobody will ever need it
    asked_.reset();
    checkpoint_.reset();
    if (action != Action::stay_alone) run_program();
    // Nobody can answer any more: every rank goes into the real MPI_Finalize by itself.
    release_finalize();
    say(fmt::format("rank {}: lost the node daemon; the job goes on without further checkpoints",
                    rank().number()));
}

// May the checkpoint that was asked for begin? Nothing: not yet.
std::optional<Event> Agent::consider() {
    always(asked_.has_value(), "a wish for a checkpoint that nobody has");
    if (!the_upper() || task_.pager || !helpers_.reached(monotonic_ns())) return {};
    char why[512] = "";
    if (the_upper()->refuses(why, sizeof why)) {
        asked_->refusal = why;
        return Event::refused;
    }
    if (std::string library = mpi_above(); !library.empty()) {
        asked_->refusal = fmt::format(
            "{} is in the program beside Fermata's MPI: what it knows cannot be saved; let ld.so load it "
            "(dlopen), which gives Fermata's instead",
            library);
        return Event::refused;
    }
    return asked_->begin.anywhere ? Event::at_once : Event::ready;
}

void Agent::begin() {
    always(asked_ && !checkpoint_, "a checkpoint that begins unasked, or beside another one");
    Asked asked = std::move(*asked_);
    asked_.reset();
    checkpoint_.emplace(asked.begin, asked.since);
    try {
        split::sample_memory_flags();  // now, while the program still runs: it costs 0.1 s per GiB
    } catch (const Error&) {           // then it is done, and reported, when the image is written
    }
    for (const wire::Clock& clock : asked.clock) hear_clock(clock);
}

std::optional<Event> Agent::capture() {
    always(checkpoint_ && checkpoint_->saving, "an image that nobody has asked for");
    always(!is_copy(), "an image of a copy that has not its rank's place yet");
    Saving& saving = *checkpoint_->saving;
    kill_point("save.before_capture");
    saving.capture();
    kill_point("save.captured");
    if (!saving.no_copy().empty()) link_->send(wire::NoCopy{wire_rank(), "", saving.no_copy()});
    if (saving.failed()) return Event::ended;
    if (saving.stream() >= 0) link_->send(wire::Streams{wire_rank(), saving.stream()});
    if (saving.rests()) {
        link_->send(wire::Captured{checkpoint_->epoch});
        return Event::ended;
    }
    if (saving.shared()) return Event::sized;
    return write({});
}

void Agent::conclude() {
    wire::Saved answer = checkpoint_->work->conclude();
    if (const Saving* saving = checkpoint_->saving) {
        answer.block = wire::block_of(rank().number(), task_.facts.size);
        answer.took_us = checkpoint_->times.in_us(saving->suspend_ns(), saving->save_ns());
    }
    link_->send(answer);
}

std::optional<Event> Agent::hop() {
    take_place(*link_);
    kill_point("hop.before_fork");
    for (const std::string& line : checkpoint_->hop->start(*link_)) warn(line, checkpoint_->epoch);
    kill_point("hop.forked");
    if (const std::string& why = checkpoint_->hop->no_copy(); !why.empty())
        link_->send(wire::NoCopy{static_cast<int32_t>(rank().number()), "", why});
    return checkpoint_->hop->failed() ? Event::ended : Event::child_writes;
}

std::optional<Event> Agent::write(std::optional<uint64_t> place) {
    always(checkpoint_ && checkpoint_->saving, "an image that is written and was not captured");
    Saving& saving = *checkpoint_->saving;
    for (const std::string& line : saving.write(place)) warn(line, checkpoint_->epoch);
    kill_point("save.writes");
    // Also when this rank could not fork: the others must not wait for its word.
    if (saving.let_program_go()) link_->send(wire::Captured{checkpoint_->epoch});
    return saving.descriptor() >= 0 ? Event::child_writes : Event::ended;
}

// The program stands and blocks everything; nothing else of it is to run, its own handler least of all. Not
// by the signal's default action: of a rank that dies of a signal Hydra says that the program ended badly.
void Agent::leave() {
    tell_starter_of_end();
    end_on_launchers_signal();
}

// Whatever this rank is doing.
void Agent::depart() {
    end_starter();
    end_by_itself();
}

// Others may have been told to save, and wait for this rank's word in the meeting: it is no.
void Agent::stay_away() {
    try {
        static_cast<void>(std::make_unique<Meeting>(the_bridge()->private_world, false).release());
    } catch (const Error&) {  // MPI is broken: so are they
    }
}

void Agent::run_program() {
    always(the_upper() != nullptr, "a program that runs on, and is not there");
    the_upper()->resume(0);
    threads::resume_all();
}

void Agent::answer() { link_->send(wire::Resumed{ended_epoch_}); }

void Agent::warn(const std::string& line, uint32_t epoch) {
    link_->send(wire::Warning{fmt::format("rank {}: {}", rank().number(), line), epoch});
}

void Agent::say_phase() {
    if (auto phase = progress_.take_news()) link_->send(wire::Phase{*phase, wire_rank()});
}

}  // namespace fermata::lower
