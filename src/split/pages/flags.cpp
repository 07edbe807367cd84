#include "split/pages/flags.h"

#include <sys/mman.h>

namespace fermata::split {
namespace {

// Keeps what sample_memory_flags() saw. Lower memory.
std::vector<Mapping>& sampled() {
    static std::vector<Mapping> maps;
    return maps;
}

// Says whether this mapping is what that one has become: grown at its bottom perhaps, as a stack does, or
// where the kernel has joined it with what came below, whose flags are the same then.
bool was(const Mapping& m, const Mapping& then) {
    return then.shared == m.shared && then.inode == m.inode &&
           (then.range.contains(m.range.begin()) || then.range.end() == m.range.end());
}

}  // namespace

void sample_memory_flags() { sampled() = read_smaps(); }

void add_memory_flags(std::vector<Mapping>& maps) {
    if (sampled().empty()) sample_memory_flags();
    const std::vector<Mapping>& flags = sampled();
    auto at = flags.begin();
    for (Mapping& m : maps) {  // both in address order
        while (at != flags.end() && at->range.end() <= m.range.begin()) ++at;
        auto then = at;
        while (then != flags.end() && then->range.begin() < m.range.end() && !was(m, *then)) ++then;
        if (then != flags.end() && then->range.begin() < m.range.end())
            m.flags = then->flags;
        else if (m.shared && (m.prot & PROT_WRITE))
            m.flags = " mw";  // new since then
    }
}

void forget_memory_flags() { sampled().clear(); }

}  // namespace fermata::split
