#include "lower/new_lower_half.h"

#include <utility>

#include "base/error.h"
#include "lower/program_children.h"
#include "lower/rank_processes.h"
#include "lower/say_each.h"
#include "lower/services.h"
#include "split/bridge.h"
#include "split/ids/go_calls.h"
#include "split/loader/command_line.h"
#include "split/threads/lazy_binding.h"
#include "split/threads/records.h"
#include "split/threads/restart.h"
#include "split/threads/signals.h"
#include "split/threads/stop.h"

namespace fermata::lower {

namespace threads = split::threads;

void NewLowerHalf::adopt() {
    if (std::string why =
            threads::adopt_table(reinterpret_cast<threads::ThreadTable*>(upper_.anchors.threads));
        !why.empty())
        fail("{}: {}", upper_.from, why);
    auto* services = reinterpret_cast<split::UpperServices*>(upper_.anchors.upper);
    // (Memory that comes later is read here where it is touched.)
    upper_.moved.in_noted(services->noted_files);
    threads::install_stop_handler();
    name_program(upper_.program);
    set_upper(services);
    services->bridge = the_bridge();
    split::show_command_line(services->command_line, services->command_line_end);
    if (std::string why = threads::fit_lazy_binding_to_cpu(upper_.linkers); !why.empty())
        fail("{}: {}: restart on a node like the first", upper_.from, why);
    if (std::string why = threads::fit_frames_to_cpu(); !why.empty()) fail("{}: {}", upper_.from, why);
}

void NewLowerHalf::meet_ranks() {
    processes_ = exchange_processes(facts_.private_world, static_cast<int>(facts_.size),
                                    split::ids::own_process(*the_upper()->ids, config_.node));
}

void NewLowerHalf::start_agent(std::unique_ptr<tree::AgentLink>& link, std::unique_ptr<image::Pager> pager,
                               std::optional<SecondLink> second) {
    agent_ = &Agent::start({config_,
                            facts_,
                            {facts_.rank(), facts_.size, upper_.job, upper_.program, upper_.key,
                             config_.files, config_.node, config_.cpu},
                            std::move(pager),
                            second},
                           std::move(link));
    threads::note_present_threads();
}

std::string NewLowerHalf::make_threads() {
    threads::RestoreReport made = threads::restore_threads();
    say_each(facts_.rank(), made.warnings);
    return made.error;
}

void NewLowerHalf::renew_ids() {
    split::ids::renew(*the_upper()->ids, processes_, facts_.rank().number());
    take_over_ended_children();
    if (the_upper()->ids->changed == 0) return;
    if (std::string line = split::ids::lead_go_calls(the_upper()->raw_call); !line.empty())
        say_each(facts_.rank(), {line});
}

void NewLowerHalf::hand_over(RestoredParts parts) { agent_->finish_restart(std::move(parts)); }

}  // namespace fermata::lower
