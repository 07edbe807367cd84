#include "pmi/world.h"

#include <cctype>

#include "base/error.h"

namespace fermata::pmi {

uint32_t World::program_of(Rank rank) const {
    uint32_t first = 0;
    for (uint32_t program = 0; program < programs.size(); ++program) {
        if (rank.number() - first < programs[program]) return program;
        first += programs[program];
    }
    return 0;
}

void World::check() const {
    // PMI-1 has blanks and '=' between its words, and MPICH reads at most 256 bytes.
    if (name.empty() || name.size() > 200) fail("a world's name of {} bytes", name.size());
    for (char c : name)
        if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.')
            fail("the name of a world holds more than letters, digits, '-', '_' and '.'");
    if (size() == 0) fail("a world without ranks");
    if (placement.ranks_on(node).empty()) fail("a world without a rank on node {}", node);
    uint64_t sum = 0;
    for (uint32_t ranks : programs) sum += ranks;
    if (!programs.empty() && sum != size())
        fail("the programs of a world have {} ranks, the world {}", sum, size());
}

}  // namespace fermata::pmi
