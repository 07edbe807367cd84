#include "split/pages/flags.h"

#include <sys/mman.h>

namespace fermata::split {
namespace {

// Keeps what sample_memory_flags() saw. Lower memory.
std::vector<Mapping>& sampled() {
    static std::vector<Mapping> maps;
    return maps;
}

}  // namespace

void sample_memory_flags() { sampled() = read_smaps(); }

void add_memory_flags(std::vector<Mapping>& maps) {
    if (sampled().empty()) sample_memory_flags();
    const std::vector<Mapping>& flags = sampled();
    auto at = flags.begin();
    for (Mapping& m : maps) {  // both in address order
        while (at != flags.end() && at->range.end() <= m.range.begin()) ++at;
        if (at != flags.end() && at->range.contains(m.range.begin()) && at->shared == m.shared &&
            at->inode == m.inode)
            m.flags = at->flags;
        else if (m.shared && (m.prot & PROT_WRITE))
            m.flags = " mw";  // new since then
    }
}

void forget_memory_flags() { sampled().clear(); }

}  // namespace fermata::split
