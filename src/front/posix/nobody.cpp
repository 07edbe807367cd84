#include "front/posix/nobody.h"

#include "split/gate.h"

namespace fermata::front {
namespace {
split::ThreadRecord nobody;  // thread pointers 0: nobody's
}

void become_nobody() noexcept {
    nobody.self = &nobody;
    split::write_gs(reinterpret_cast<uint64_t>(&nobody));
}

}  // namespace fermata::front
