#include "lower/program_children.h"

#include <fmt/core.h>

#include "lower/services.h"
#include "split/ids/ids.h"
#include "split/process/ended.h"

namespace fermata::lower {
namespace {

split::EndedChildren* table() { return the_upper()->version >= 17 ? the_upper()->ended_children : nullptr; }

}  // namespace

std::string note_children(const std::string& node, const std::vector<split::process::Child>& children,
                          bool lost) {
    std::vector<int> numbers;
    for (const split::process::Child& child : children) numbers.push_back(child.pid);
    split::ids::note(*the_upper()->ids, node, numbers);
    if (table() == nullptr) return "";
    const size_t without_room = split::process::note_ended(*table(), children, *the_upper()->ids, lost);
    if (without_room == 0) return "";
    return fmt::format(
        "how {} child processes have ended is not kept, for want of room: waiting for them fails "
        "with ECHILD",
        without_room);
}

void take_over_ended_children() {
    if (table() != nullptr) split::process::take_over_ended(*table());
}

}  // namespace fermata::lower
