#include "lower/interfaces.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "fermata_interface.h"

namespace fermata::lower {

std::string why_not_continued(const Anchors& anchors, const OwnInterface& own) {
    if (anchors.interface == own.number && anchors.bridge_version == own.bridge) return "";
    const auto* begin = std::begin(split::kKnownInterfaces);
    const auto* end = std::end(split::kKnownInterfaces);
    auto known = [&](uint32_t number) {
        return std::find_if(begin, end, [&](const auto& one) { return one.number == number; });
    };
    // A later build may continue this one's, but not the other way around.
    const auto* theirs = known(anchors.interface);
    const auto* ours = known(own.number);
    if (theirs != end && ours != end && theirs < ours && theirs->continued &&
        theirs->bridge == anchors.bridge_version)
        return "";
    const std::string numbers = fmt::format("interface {:08x}, here {:08x}", anchors.interface, own.number);
    if (theirs != end && theirs->continued)
        return fmt::format(
            "was made by Fermata {} ({}), and this build is none that is known to continue it: restart it "
            "with "
            "that version or a later release",
            theirs->version, numbers);
    if (theirs != end)
        return fmt::format("was made by Fermata {} ({}), which is too old: restart it with that version",
                           theirs->version, numbers);
    return fmt::format(
        "was made by a build of Fermata with another interface between program and library ({}), unknown "
        "here: "
        "restart it with the build that made it",
        numbers);
}

}  // namespace fermata::lower
