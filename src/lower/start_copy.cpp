#include "lower/start_copy.h"

#include <utility>

#include "base/error.h"
#include "base/kill_point.h"
#include "lower/agent.h"
#include "lower/new_lower_half.h"
#include "lower/say_each.h"
#include "lower/services.h"
#include "lower/stay.h"
#include "split/process/state.h"
#include "split/shared/registry.h"
#include "split/threads/restart.h"
#include "split/threads/stop.h"

namespace fermata::lower {
namespace {

split::shared::Peers nobody(Rank rank, const std::string& node) {
    const auto refuse = [] { fail("it shares memory with other ranks"); };
    return {rank, node, [refuse](Rank, const std::string&) { refuse(); },
            [refuse](Rank) {
                refuse();
                return std::string();
            }};
}

// The rank has its files open and goes on to write them: nothing of them is put back, or looked at.
std::string restore_process(const LoadedImage& image) {
    const split::process::Restored restored =
        split::process::restore(image.process_state, process_limits(), {image.generation, false});
    if (!restored.error.empty()) return restored.error;
    try {
        stay_apart();
    } catch (const std::exception& error) {
        return error.what();
    }
    return {};
}

}  // namespace

WantedImage image_of_copy(const tree::AgentConfig& config, image::KeyPointer key) {
    WantedImage wanted{config.restore,
                       "",
                       "",
                       *config.copy_of,
                       config.copys_ranks,
                       split::process::PathMap::from_text(config.moved),
                       std::move(key)};
    wanted.lone = config.generation.number();
    wanted.job = config.job_number();
    return wanted;
}

void continue_as_copy(tree::AgentConfig& config, const MpiFacts& facts, image::KeyPointer key,
                      std::unique_ptr<tree::AgentLink>& link) {
    make_bridge(facts, {config.protocol, config.moved, config.restarts, config.message_log, config.log_bytes,
                        config.node_dir()});
    kill_point("clone.loads");
    LoadedImage image = load_image(image_of_copy(config, key), false, nobody(facts.rank(), config.node));
    NewLowerHalf half(config, facts,
                      {image.anchors, image.program, config.restore, image.identity.job, image.linkers,
                       split::process::PathMap::from_text(config.moved), std::move(key)});
    half.adopt();
    half.start_agent(link, nullptr);
    RestoredParts parts{"", half.make_threads()};
    half.renew_ids();
    if (parts.error.empty()) parts.error = restore_process(image);
    split::shared::forget_objects();
    parts.process_state = std::move(image.process_state);
    kill_point("clone.loaded");
    half.hand_over(std::move(parts));
    split::threads::continue_main();
}

}  // namespace fermata::lower
