// Root leads a restart and the end of a job in what they do about generations that nodes keep
// (src/keeping/keeper.h keeps the account).
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "root/control/json.h"
#include "root/root.h"

namespace fermata::root {

// Before anything of a program is back: which generation can be had on the nodes that the ranks are on?
void Root::choose_generation() {
    keeping::RestartChoice& choice = keeper_.restart();
    if (!choice.under_way() || over() || !start_.furthest_behind()) return;
    if (!choice.go_on()) return;
    const store::GenerationInfo* chosen = choice.chosen();
    if (!chosen)
        return fail_job(fmt::format("nothing to restart from: {}", choice.lost()),
                        static_cast<int32_t>(ExitCode::damaged));
    keeper_.restarted();
    settings_.restored = Generation(chosen->number);
    start_.restored_from(settings_.restored);
    const std::string where = chosen->manifest->on_nodes() ? keeper_.where() : std::string("files");
    if (!choice.lost().empty())
        say(fmt::format("lost: {}; going on from {}, in {}", choice.lost(), settings_.restored.name(),
                        where));
    else
        spdlog::info("restarting from {}, in {}", settings_.restored.name(), where);
    if (!choice.taken().empty()) say(choice.taken());
}

// A first start is refused where nothing could be kept twice; later that is said, and the job goes on.
bool Root::place_levels() {
    const keeping::Keeper::Placed placed = keeper_.place();
    if (!placed.refusal.empty() && !settings_.restored) {
        fail_job(fmt::format("--levels: {}", placed.refusal), static_cast<int32_t>(ExitCode::usage));
        return false;
    }
    for (const std::string& line : placed.lines) say(line);
    return true;
}

void Root::mend(int client, Generation only) {
    const bool possible = running_ && keeper_.in_use() && !keeper_.mending().under_way();
    if (possible) return keeper_.mending().start(only, client);
    control_.say(client, dump({{"done", true},
                               {"ok", !keeper_.in_use()},
                               {"line", !keeper_.in_use() ? "nothing is in the memory of nodes"
                                        : !running_       ? "the job does not run yet"
                                                          : "a repair is under way"}}));
    control_.finish(client);
}

void Root::say_what_was_mended() {
    const int client = keeper_.mending().take_client();
    if (client < 0) return;
    for (const auto* lines : {&keeper_.mending().mended(), &keeper_.mending().left()})
        for (const keeping::Mending::Line& line : *lines) {
            const bool mended = lines == &keeper_.mending().mended();
            spdlog::info("{}: {}{}", line.generation.name(), mended ? "repaired: " : "", line.text);
            control_.say(
                client,
                dump({{"generation", line.generation.name()}, {"mended", mended}, {"text", line.text}}));
        }
    control_.say(client, dump({{"done", true}, {"ok", true}, {"line", ""}}));
    control_.finish(client);
}

// The newest is rebuilt where parity alone has it.
void Root::make_whole(double end) {
    while (keeper_.only_with_parity() && keeper_.last_copy().worth_a_try() && monotonic_s() < end)
        make_whole(keeper_.only_with_parity(), end);
}

void Root::make_whole(Generation generation, double end) {
    keeping::LastCopy& last = keeper_.last_copy();
    last.start(generation);
    while (!last.go_on()) {
        if (monotonic_s() > end) return last.give_up("it was not done in the time of a save");
        keeper_.turn_of_files(tree::now_ms());
        serve(20);
    }
}

// Generations that only nodes have would go with them. A supervisor goes on from there.
void Root::save_what_nodes_keep() {
    // Before a restart has chosen it is not known what is there: all of it stays.
    if (keeper_.restart().under_way()) return;
    const bool done = stopped_ || (exit_code() == 0 && came_to_its_end());
    // A life before may have had such levels, which this one, gone on from files, has not.
    if (done) return keeper_.forget();
    if (!keeper_.in_use()) return;
    const bool goes_on = settings_.may_restart && settings_.goes_on &&
                         settings_.goes_on(exit_code(), who_ended_it(), newest());
    if (goes_on && !asked_to_end()) return;
    const double end = monotonic_s() + settings_.limits.save;
    const keeping::LastCopy& last = keeper_.last_copy();
    for (make_whole(end); keeper_.only_on_nodes() && monotonic_s() < end; make_whole(end)) {
        const size_t nodes = tree_.nodes().size();
        spdlog::info("{} is to come from {} nodes to files", keeper_.only_on_nodes().name(), nodes);
        keeper_.copy_newest_now(tree::now_ms());
        if (!keeper_.is_copying_to_files()) break;
        const bool is_newest = keeper_.copies_to_files().copying() == keeper_.only_on_nodes();
        while (keeper_.is_copying_to_files() && monotonic_s() < end) {
            keeper_.turn_of_files(tree::now_ms());
            if (keeper_.is_copying_to_files()) serve(20);
        }
        if (!keeper_.copies_to_files().has_failed() || !is_newest || tree_.nodes().size() < nodes) continue;
        // When it failed since a node is gone, its buddy may have what is missing; what is damaged may be
        // intact on another node, or rebuilt.
        const Generation left = keeper_.only_on_nodes();
        if (!left || !last.worth_a_try()) break;
        make_whole(left, end);
        if (!last.made_whole()) break;
    }
    if (last.generation() && keeper_.in_files(last.generation()))
        say(fmt::format("{}; it is in {} now",
                        last.rebuilt().empty()
                            ? last.generation().name() + ": each image was intact on some node"
                            : last.rebuilt(),
                        settings_.ckpt_dir));
    // The daemon alone may have died: then all is there yet.
    const std::string lost = keeper_.lost_with_nodes();
    if (!lost.empty()) say(lost);
    if (Generation left = keeper_.only_on_nodes())
        say(fmt::format("{} stays in {} only: `fermata restart` goes on from there as long as it is there",
                        left.name(), keeper_.where()));
    else if (Generation parity = keeper_.only_with_parity())
        say(fmt::format("{} stays in {}: `fermata restart` may make it whole again from parity{}",
                        parity.name(), keeper_.where(),
                        last.why_not().empty() ? "" : fmt::format(" ({})", last.why_not())));
    else if (lost.empty())
        keeper_.forget();
}

}  // namespace fermata::root
