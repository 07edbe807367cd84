// This file ends the job when an invariant of the front is broken (base/invariant.h): the front has no
// exceptions.
#include "base/invariant.h"

#include "front/core/fatal.h"

namespace fermata {

void invariant_broken(const char* what) {
    const char* line[] = {"fermata: internal error, please report it: ", what, nullptr};
    front::fatal_join(line);
}

}  // namespace fermata
