#include "keeping/levels/buddy_copies.h"
#include "keeping/levels/file_copies.h"
#include "keeping/levels/kind.h"
#include "keeping/levels/local_copies.h"
#include "keeping/levels/parity_rounds.h"

namespace fermata::keeping {
namespace {

// Checkpoints go there by themselves.
Kind memory() {
    return {.name = "memory",
            .shape = "memory",
            .read = [](const Entry& entry, level::Levels& levels) { levels.memory = entry.period(); },
            .period = [](const level::Levels& levels) { return levels.memory; }};
}

}  // namespace

const std::vector<Kind>& kinds() {
    static const std::vector<Kind> all = {
        memory(), LocalCopies::kind(), BuddyCopies::kind(), ParityRounds::kind(), FileCopies::kind(),
    };
    return all;
}

}  // namespace fermata::keeping
