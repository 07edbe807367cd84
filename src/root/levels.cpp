// What a checkpoint, a restart and the end of a job do about generations in the memory of nodes
// (memory_levels.h keeps the account).
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "root/root.h"

namespace fermata::root {

using store::LevelName;

// Memory is asked for first: the generation goes to the next level when a node has none to give.
void Root::make_room(double end) {
    if (attempt_.level == LevelName::memory) {
        levels_.ask_for_room(attempt_.epoch, Generation(attempt_.generation.number));
        until([&] { return levels_.room_everywhere() || !levels_.why_no_room().empty(); }, end,
              "every node to look for memory");
        if (const std::string why = levels_.why_no_room(); !why.empty()) {
            attempt_.level = LevelName::files;
            levels_.clean_up();
            say(fmt::format("{} goes to files, not to memory: {}",
                            Generation(attempt_.generation.number).name(), why));
        }
    }
    if (attempt_.level == LevelName::files) level_.check_space(last_bytes_ + last_bytes_ / 10);
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

// Before anything of a program is back: which generation can be had from the nodes that the ranks are on?
void Root::choose_generation() {
    if (!levels_.chooses() || over() || !start_.furthest_behind()) return;
    if (!levels_.asked()) levels_.ask_for_copies();
    if (!levels_.all_answered()) return;
    const store::GenerationInfo* chosen = levels_.choose();
    if (!chosen)
        return fail_job(fmt::format("nothing to restart from: {}", levels_.lost()),
                        static_cast<int32_t>(ExitCode::damaged));
    settings_.restored = Generation(chosen->number);
    start_.restored_from(settings_.restored);
    const std::string where = chosen->manifest->in_memory_of_nodes() ? levels_.where() : std::string("files");
    if (!levels_.lost().empty())
        say(fmt::format("lost: {}; going on from {}, in {}", levels_.lost(), settings_.restored.name(),
                        where));
    else
        spdlog::info("restarting from {}, in {}", settings_.restored.name(), where);
}

// What is in memory only would go with the nodes. A supervisor goes on from there.
void Root::save_what_is_in_memory() {
    // Before a restart has chosen it is not known what is there: all of it stays.
    if (!levels_.in_use() || levels_.chooses()) return;
    const bool done = stopped_ || (exit_code() == 0 && came_to_its_end());
    if (done) return levels_.forget();
    if (settings_.may_restart && !asked_to_end()) return;
    const double end = monotonic_s() + settings_.limits.save;
    while (levels_.only_in_memory() && monotonic_s() < end) {
        levels_.copy_newest_now();
        if (!levels_.busy()) break;
        while (levels_.busy() && monotonic_s() < end) {
            levels_.turn(tree::now_ms());
            if (levels_.busy()) serve(20);
        }
        if (levels_.copy_failed()) break;
    }
    if (Generation left = levels_.only_in_memory())
        say(fmt::format("{} stays in {} only: `fermata restart` goes on from there as long as it is there",
                        left.name(), levels_.where()));
    else
        levels_.forget();
}

}  // namespace fermata::root
