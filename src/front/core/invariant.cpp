// What the front does when an invariant is broken (base/invariant.h): it has no exceptions.
#include "base/invariant.h"

#include "front/core/fatal.h"

namespace fermata {

void invariant_broken(const char* what) {
    const char* line[] = {"fermata: internal error, please report it: ", what, nullptr};
    front::fatal_join(line);
}

}  // namespace fermata
