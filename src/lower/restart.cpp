#include "lower/restart.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "lower/agent.h"
#include "lower/load_image.h"
#include "lower/meeting.h"
#include "lower/rank_processes.h"
#include "lower/services.h"
#include "lower/shared_ranks.h"
#include "split/bridge.h"
#include "split/ids/go_calls.h"
#include "split/loader/command_line.h"
#include "split/process/path_map.h"
#include "split/process/state.h"
#include "split/threads/donors.h"
#include "split/threads/lazy_binding.h"
#include "split/threads/records.h"
#include "split/threads/restart.h"
#include "split/threads/signals.h"
#include "split/threads/stop.h"

namespace fermata::lower {
namespace {

namespace threads = split::threads;

// The phases of the main thread, in the order in which continue_image() calls them.
class Restart {
  public:
    Restart(const tree::AgentConfig& config, const MpiFacts& facts, image::KeyPointer key,
            std::unique_ptr<tree::AgentLink>& link)
        : config_(config),
          facts_(facts),
          link_(link),
          wanted_{config.restore, config.images, config.seal,
                  facts.rank(),   facts.size,    split::process::PathMap::from_text(config.moved),
                  std::move(key)} {}

    void enter(wire::RestartPhase phase);
    void put_back_files();
    void load();
    void adopt();
    void meet_ranks();
    void start_agent();
    void make_threads();
    void renew_ids();
    void restore_process();
    void hand_over();

  private:
    void say_each(const std::vector<std::string>& lines) const {
        for (const std::string& line : lines) say(fmt::format("rank {}: {}", facts_.rank().number(), line));
    }

    const tree::AgentConfig& config_;
    const MpiFacts& facts_;
    std::unique_ptr<tree::AgentLink>& link_;  // the agent's, once there is one
    const WantedImage wanted_;
    LoadedImage image_;
    std::vector<split::ids::RankProcess> processes_;  // of all ranks
    Agent* agent_ = nullptr;
    RestoredParts parts_;
};

// No rank goes on before all files are as they were: others may have them open.
void Restart::put_back_files() {
    split::process::PutBack mine = put_files_back(wanted_, config_.files);
    say_each(mine.warnings);
    if (!mine.error.empty()) fail("{}", mine.error);
    int files = sum_of_all(facts_.private_world, mine.files);
    if (files > 0 && facts_.rank() == Rank(0))
        say(
            fmt::format("{} of the program's files {} as at {} again; newer versions are kept beside {} "
                        "(*.after-{}, *.end-after-{})",
                        files, files == 1 ? "is" : "are", config_.generation.name(),
                        files == 1 ? "it" : "them", config_.generation.name(), config_.generation.name()));
}

void Restart::load() {
    image_ = load_image(wanted_, config_.mapped, peers(facts_.private_world, facts_.rank(), config_.node));
    say_each(image_.warnings);
}

void Restart::adopt() {
    if (std::string why =
            threads::adopt_table(reinterpret_cast<threads::ThreadTable*>(image_.anchors.threads));
        !why.empty())
        fail("{}: {}", config_.restore, why);
    auto* upper = reinterpret_cast<split::UpperServices*>(image_.anchors.upper);
    // (Memory that comes later is read here where it is touched.)
    wanted_.moved.in_noted(upper->noted_files);
    threads::install_stop_handler();
    name_program(image_.program);
    set_upper(upper);
    upper->bridge = the_bridge();
    split::show_command_line(upper->command_line, upper->command_line_end);
    if (std::string why = threads::fit_lazy_binding_to_cpu(image_.linkers); !why.empty())
        fail("{}: {}: restart on a node like the first", config_.restore, why);
    if (std::string why = threads::fit_frames_to_cpu(); !why.empty()) fail("{}: {}", config_.restore, why);
}

// While this thread may still use MPI.
void Restart::meet_ranks() {
    processes_ = exchange_processes(facts_.private_world, static_cast<int>(facts_.size),
                                    split::ids::own_process(*the_upper()->ids, config_.node));
}

// It serves the threads that are made next.
void Restart::start_agent() {
    agent_ = &Agent::start({config_,
                            facts_,
                            {facts_.rank(), facts_.size, image_.identity.job, image_.program, wanted_.key,
                             config_.files, config_.node},
                            std::move(image_.pager)},
                           std::move(link_));
    threads::note_present_threads();
}

void Restart::make_threads() {
    threads::RestoreReport made = threads::restore_threads();
    parts_.error = made.error;
    say_each(made.warnings);
}

// Threads have their new numbers by now, and nothing of the program has run.
void Restart::renew_ids() {
    split::ids::renew(*the_upper()->ids, processes_, facts_.rank().number());
    if (the_upper()->ids->changed == 0) return;
    if (std::string line = split::ids::lead_go_calls(the_upper()->raw_call); !line.empty()) say_each({line});
}

void Restart::restore_process() {
    if (parts_.error.empty()) {
        split::process::Restored restored = split::process::restore(image_.process_state, process_limits(),
                                                                    {image_.generation, config_.files});
        parts_.error = restored.error;
        say_each(restored.warnings);
    }
    split::shared::forget_objects();
}

void Restart::hand_over() {
    parts_.process_state = std::move(image_.process_state);
    agent_->finish_restart(std::move(parts_));
}

// Best effort: a restart does not fail because nobody hears where it stands.
void Restart::enter(wire::RestartPhase phase) {
    if (agent_)
        agent_->note_phase(phase);
    else
        link_->send(wire::Phase{phase, static_cast<int32_t>(facts_.rank().number())});
}

// Which generation it is may depend on what is in the memory of the nodes that the ranks have come to.
void take_choice(tree::AgentConfig& config, tree::AgentLink& link) {
    const wire::Chosen chosen = link.choice();
    config.restore = chosen.directory;
    config.generation = chosen.generation;
    config.seal = chosen.seal;
    config.images = chosen.images;
}

}  // namespace

void continue_image(tree::AgentConfig& config, const MpiFacts& facts, image::KeyPointer key,
                    std::unique_ptr<tree::AgentLink>& link) {
    using Phase = wire::RestartPhase;
    make_bridge(facts, {config.protocol, config.moved, config.restarts});
    link->send(wire::Phase{Phase::load, static_cast<int32_t>(facts.rank().number())});
    if (config.choice) take_choice(config, *link);
    Restart restart(config, facts, std::move(key), link);
    restart.put_back_files();
    restart.load();
    restart.enter(Phase::adopt);
    restart.adopt();
    restart.meet_ranks();
    restart.start_agent();
    restart.enter(Phase::threads);
    restart.make_threads();
    restart.enter(Phase::process);
    restart.renew_ids();
    restart.restore_process();
    restart.hand_over();  // to the agent: rebuild, go
    threads::continue_main();
}

std::string rebuild_objects(const RestoredParts& parts, Rank rank) {
    std::string error = parts.error;
    if (error.empty()) {
        char line[1024] = "";
        if (the_upper()->rebuild(line, sizeof line) != 0)
            error = line[0] ? line : "cannot rebuild the MPI objects";
    }
    return error.empty() ? "" : fmt::format("rank {}: {}", rank.number(), error);
}

std::vector<std::string> let_program_run(const RestoredParts& parts) {
    the_upper()->resume(1);
    split::process::Restored timers = split::process::restore_timers(parts.process_state);
    std::vector<std::string> lines = timers.warnings;
    if (!timers.error.empty()) lines.push_back(timers.error);
    threads::resume_all();
    return lines;
}

}  // namespace fermata::lower
