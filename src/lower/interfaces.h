// Which images of other builds this build continues: those whose interface between the halves is in
// split/interfaces.txt, and says so (docs/upgrades.md).
#pragma once

#include <cstdint>
#include <string>

#include "lower/image_parts.h"

namespace fermata::lower {

// The interface of this build.
struct OwnInterface {
    uint32_t bridge, number;
};

// Says why a lower half with `own` does not go with an upper half that has `anchors`, "" when it does; the
// words follow what the upper half is called.
std::string why_not_continued(const Anchors& anchors, const OwnInterface& own);

}  // namespace fermata::lower
