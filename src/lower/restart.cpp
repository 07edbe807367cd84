#include "lower/restart.h"

#include <utility>

#include "base/error.h"
#include "lower/agent.h"
#include "lower/new_lower_half.h"
#include "lower/new_process.h"
#include "lower/services.h"
#include "split/process/state.h"
#include "split/shared/registry.h"
#include "split/threads/restart.h"
#include "split/threads/stop.h"

namespace fermata::lower {
namespace {

// Which generation it is may depend on what is in the memory of the nodes that the ranks have come to.
void take_choice(tree::AgentConfig& config, tree::AgentLink& link) {
    const wire::Chosen chosen = link.choice();
    config.restore = chosen.directory;
    config.generation = chosen.generation;
    config.seal = chosen.seal;
    config.images = chosen.images;
}

// Best effort: a restart does not fail because nobody hears where it stands.
void say_phase(tree::AgentLink& link, const MpiFacts& facts, wire::RestartPhase phase) {
    link.send(wire::Phase{phase, static_cast<int32_t>(facts.rank().number())});
}

UpperHalf upper_half_of(const LoadedImage& image, const tree::AgentConfig& config, image::KeyPointer key) {
    return {image.anchors,      image.program, config.restore,
            image.identity.job, image.linkers, split::process::PathMap::from_text(config.moved),
            std::move(key)};
}

}  // namespace

void continue_image(tree::AgentConfig& config, const MpiFacts& facts, image::KeyPointer key,
                    std::unique_ptr<tree::AgentLink>& link) {
    using Phase = wire::RestartPhase;
    make_bridge(facts, {config.protocol, config.moved, config.restarts, config.message_log, config.log_bytes,
                        config.node_dir()});
    say_phase(*link, facts, Phase::load);
    if (config.choice) take_choice(config, *link);
    NewProcess process(config, facts, key);
    process.put_back_files();
    LoadedImage image = process.load();
    NewLowerHalf half(config, facts, upper_half_of(image, config, key));
    say_phase(*link, facts, Phase::adopt);
    half.adopt();
    half.meet_ranks();
    half.start_agent(link, std::move(image.pager));
    half.agent()->note_phase(Phase::threads);
    RestoredParts parts{"", half.make_threads()};
    half.agent()->note_phase(Phase::process);
    half.renew_ids();
    if (parts.error.empty()) parts.error = process.restore(image);
    split::shared::forget_objects();
    parts.process_state = std::move(image.process_state);
    half.hand_over(std::move(parts));  // to the agent: rebuild, go
    split::threads::continue_main();
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
    split::threads::resume_all();
    return lines;
}

}  // namespace fermata::lower
