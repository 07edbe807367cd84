// Memory and broken invariants of the machine under test: the heap, and a Fault.
#include "replay/memory.h"

#include <cstdlib>

#include "base/invariant.h"
#include "copy.h"

namespace fermata::replay {
void* take_memory(size_t bytes) noexcept { return malloc(bytes ? bytes : 1); }
void give_memory(void* block) noexcept { free(block); }
}  // namespace fermata::replay

namespace fermata {
void invariant_broken(const char* what) { throw replay::test::Fault{what}; }
}  // namespace fermata
