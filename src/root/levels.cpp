// What a checkpoint, a restart and the end of a job do about generations that nodes keep
// (src/keeping/keeper.h keeps the account).
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "root/json.h"
#include "root/root.h"

namespace fermata::root {

using store::LevelName;

// Room is asked for first: the generation goes to the next level when a node has none to give.
void Root::make_room(double end) {
    if (attempt_.level != LevelName::files) {
        levels_.ask_for_room(attempt_.epoch, Generation(attempt_.generation.number),
                             store::medium_of(attempt_.level));
        until([&] { return levels_.room_everywhere() || !levels_.why_no_room().empty(); }, end,
              "every node to look for room");
        if (const std::string why = levels_.why_no_room(); !why.empty()) {
            const char* there = attempt_.level == LevelName::memory ? "memory" : "local directories";
            attempt_.level = LevelName::files;
            levels_.clean_up();
            say(fmt::format("{} goes to files, not to {}: {}", Generation(attempt_.generation.number).name(),
                            there, why));
        }
    }
    if (attempt_.level == LevelName::files) level_.check_space(ended_.bytes + ended_.bytes / 10);
}

// By rank, the node that has its image.
std::vector<std::string> Root::nodes_of_ranks() const {
    std::vector<std::string> nodes(start_.ranks());
    for (auto& [node, place] : start_.roster().places())
        place.ranks.each([&, id = node](int32_t rank) {
            nodes.at(static_cast<size_t>(rank)) = tree_.nodes().at(id).host;
        });
    return nodes;
}

// Before anything of a program is back: which generation can be had on the nodes that the ranks are on?
void Root::choose_generation() {
    keeping::RestartChoice& choice = levels_.restart();
    if (!choice.under_way() || over() || !start_.furthest_behind()) return;
    if (!choice.go_on()) return;
    const store::GenerationInfo* chosen = choice.chosen();
    if (!chosen)
        return fail_job(fmt::format("nothing to restart from: {}", choice.lost()),
                        static_cast<int32_t>(ExitCode::damaged));
    levels_.restarted();
    settings_.restored = Generation(chosen->number);
    start_.restored_from(settings_.restored);
    const std::string where = chosen->manifest->on_nodes() ? levels_.where() : std::string("files");
    if (!choice.lost().empty())
        say(fmt::format("lost: {}; going on from {}, in {}", choice.lost(), settings_.restored.name(),
                        where));
    else
        spdlog::info("restarting from {}, in {}", settings_.restored.name(), where);
    if (!choice.taken().empty()) say(choice.taken());
}

// A first start is refused where nothing could be kept twice; later that is said, and the job goes on.
bool Root::pair_up() {
    keeping::Keeper::Pairing pairing = levels_.pair_up();
    if (planned_.on()) planned_.no_buddies(std::exchange(pairing.no_buddies, ""));
    const std::string& why = pairing.no_buddies.empty() ? pairing.no_parity : pairing.no_buddies;
    if (!why.empty() && !settings_.restored) {
        fail_job(fmt::format("--levels: {}", why), static_cast<int32_t>(ExitCode::usage));
        return false;
    }
    if (!pairing.no_buddies.empty())
        say(fmt::format("no second copies: {}", pairing.no_buddies));
    else if (!levels_.warning().empty())
        say(levels_.warning());
    if (!pairing.no_parity.empty()) say(fmt::format("no parity: {}", pairing.no_parity));
    return true;
}

void Root::mend(int client, Generation only) {
    const bool possible = running_ && levels_.in_use() && !levels_.mending().under_way();
    if (possible) return levels_.mend(only, client);
    control_.say(client, dump({{"done", true},
                               {"ok", !levels_.in_use()},
                               {"line", !levels_.in_use() ? "nothing is in the memory of nodes"
                                        : !running_       ? "the job does not run yet"
                                                          : "a repair is under way"}}));
    control_.finish(client);
}

void Root::say_what_was_mended() {
    const int client = levels_.mending().take_client();
    if (client < 0) return;
    for (const auto* lines : {&levels_.mending().mended(), &levels_.mending().left()})
        for (const keeping::Mending::Line& line : *lines) {
            const bool mended = lines == &levels_.mending().mended();
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
    while (levels_.only_with_parity() && levels_.last_copy().worth_a_try() && monotonic_s() < end)
        make_whole(levels_.only_with_parity(), end);
}

void Root::make_whole(Generation generation, double end) {
    keeping::LastCopy& last = levels_.last_copy();
    last.start(generation);
    while (!last.go_on()) {
        if (monotonic_s() > end) return last.give_up("it was not done in the time of a save");
        levels_.turn_of_files(tree::now_ms());
        serve(20);
    }
}

// What only nodes have would go with them. A supervisor goes on from there.
void Root::save_what_nodes_keep() {
    // Before a restart has chosen it is not known what is there: all of it stays.
    if (levels_.restart().under_way()) return;
    const bool done = stopped_ || (exit_code() == 0 && came_to_its_end());
    // A life before may have had such levels, which this one, gone on from files, has not.
    if (done) return levels_.forget();
    if (!levels_.in_use()) return;
    const bool goes_on = settings_.may_restart && settings_.goes_on &&
                         settings_.goes_on(exit_code(), who_ended_it(), newest());
    if (goes_on && !asked_to_end()) return;
    const double end = monotonic_s() + settings_.limits.save;
    const keeping::LastCopy& last = levels_.last_copy();
    for (make_whole(end); levels_.only_on_nodes() && monotonic_s() < end; make_whole(end)) {
        const size_t nodes = tree_.nodes().size();
        spdlog::info("{} is to come from {} nodes to files", levels_.only_on_nodes().name(), nodes);
        levels_.copy_newest_now();
        if (!levels_.busy()) break;
        const bool is_newest = levels_.copying() == levels_.only_on_nodes();
        while (levels_.busy() && monotonic_s() < end) {
            levels_.turn_of_files(tree::now_ms());
            if (levels_.busy()) serve(20);
        }
        if (!levels_.copy_failed() || !is_newest || tree_.nodes().size() < nodes) continue;
        // When it failed since a node is gone, its buddy may have what is missing; what is damaged may be
        // intact on another node, or rebuilt.
        const Generation left = levels_.only_on_nodes();
        if (!left || !last.worth_a_try()) break;
        make_whole(left, end);
        if (!levels_.made_whole()) break;
    }
    if (last.generation() && levels_.in_files(last.generation()))
        say(fmt::format("{}; it is in {} now",
                        last.rebuilt().empty()
                            ? last.generation().name() + ": each image was intact on some node"
                            : last.rebuilt(),
                        settings_.ckpt_dir));
    // It may be the daemon alone that died: then all is there yet.
    const std::string lost = levels_.lost_with_nodes();
    if (!lost.empty()) say(lost);
    if (Generation left = levels_.only_on_nodes())
        say(fmt::format("{} stays in {} only: `fermata restart` goes on from there as long as it is there",
                        left.name(), levels_.where()));
    else if (Generation parity = levels_.only_with_parity())
        say(fmt::format("{} stays in {}: `fermata restart` may make it whole again from parity{}",
                        parity.name(), levels_.where(),
                        last.why_not().empty() ? "" : fmt::format(" ({})", last.why_not())));
    else if (lost.empty())
        levels_.forget();
}

}  // namespace fermata::root
